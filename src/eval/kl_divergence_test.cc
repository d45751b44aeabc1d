#include "eval/kl_divergence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "engine/synthetic_model.h"
#include "eval/quality_metrics.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

Corpus MakeCorpus(int64_t windows, int64_t context) {
  Corpus corpus{.source = "made", .context = context};
  RandomStream random(9);
  for (int64_t w = 0; w < windows; ++w) {
    TokenWindow window{.slice = w % 2 == 0 ? "even" : "odd", .document = w};
    for (int64_t i = 0; i < context; ++i) window.tokens.push_back(static_cast<int32_t>(random.Below(64)));
    corpus.windows.push_back(window);
  }
  corpus.num_documents = windows;
  return corpus;
}

// A model that prefers another token than SyntheticModel does wherever its wrapped model's logits are used.
class ShiftedModel : public SyntheticModel {
 public:
  absl::Status Forward(const ForwardBatch& batch, KvStorage& kv, absl::Span<float> logits) override {
    const absl::Status status = SyntheticModel::Forward(batch, kv, logits);
    for (float& logit : logits) logit *= scale;
    return status;
  }
  float scale = 0.5f;
};

TEST(CompareModelsTest, AModelAgainstItselfHasExactlyZeroDivergence) {
  SyntheticModel reference, model;
  ThreadPool pool(1);
  const Corpus corpus = MakeCorpus(4, 48);
  const auto scored = CompareModels(reference, {&model}, corpus, {}, pool);
  ASSERT_TRUE(scored.ok()) << scored.status();
  const ModelQuality quality = Summarize((*scored)[0], corpus, {});
  EXPECT_EQ(quality.overall.kl_mean.value, 0.0);
  EXPECT_EQ(quality.overall.kl_max.value, 0.0);
  EXPECT_EQ(quality.overall.same_top.value, 1.0);
  EXPECT_EQ(quality.overall.ppl_ratio.value, 1.0);
  EXPECT_EQ(quality.overall.kl_mean.n, 4 * 24);
  ASSERT_EQ(quality.slices.size(), 2u);
  EXPECT_EQ(quality.slices[0].first, "even");
  EXPECT_EQ(quality.slices[0].second.kl_mean.n, 2 * 24);
}

TEST(CompareModelsTest, ScoresTheSecondHalfOrEverythingWithTheRightNextToken) {
  SyntheticModel reference, model;
  ThreadPool pool(1);
  const Corpus corpus = MakeCorpus(1, 10);
  const auto half = CompareModels(reference, {&model}, corpus, {}, pool);
  ASSERT_TRUE(half.ok());
  ASSERT_EQ((*half)[0].size(), 5u);
  EXPECT_EQ((*half)[0].front().position, 5);
  EXPECT_EQ((*half)[0].back().position, 9);
  const auto all = CompareModels(reference, {&model}, corpus, {.score_all = true, .chunk = 3}, pool);
  ASSERT_TRUE(all.ok());
  ASSERT_EQ((*all)[0].size(), 9u);
  // The synthetic model gives its own next token logit 4 and the others at most 1.
  const std::vector<int32_t>& tokens = corpus.windows[0].tokens;
  for (const ScoredToken& token : (*all)[0]) {
    const bool predicted = reference.NextToken(absl::MakeConstSpan(tokens).subspan(0, token.position)) == tokens[token.position];
    EXPECT_EQ(token.comparison.nll_reference < 1.6, predicted) << token.position;
  }
}

TEST(CompareModelsTest, TheResultDoesNotDependOnChunkOrThreads) {
  SyntheticModel reference;
  ShiftedModel model;
  const Corpus corpus = MakeCorpus(3, 40);
  std::vector<double> first;
  for (const int64_t chunk : {1, 7, 64}) {
    for (const int threads : {1, 2}) {
      ThreadPool pool(threads);
      const auto scored = CompareModels(reference, {&model}, corpus, {.chunk = chunk}, pool);
      ASSERT_TRUE(scored.ok());
      std::vector<double> kl;
      for (const ScoredToken& token : (*scored)[0]) kl.push_back(token.comparison.kl);
      if (first.empty()) first = kl;
      EXPECT_EQ(kl, first);
      EXPECT_GT(kl[0], 0.0);
    }
  }
}

TEST(CompareModelsTest, WhatIsServedIsComparedAtEverySetting) {
  SyntheticModel reference;
  ShiftedModel model;
  const Corpus corpus = MakeCorpus(2, 40);
  const std::vector<SamplingParams> settings = {{.temperature = 0}, {.temperature = 0.5f}, {.top_k = 3}};
  ThreadPool one(1), two(2);
  const auto scored = CompareModels(reference, {&model}, corpus, {.chunk = 7, .served = settings}, one);
  const auto again = CompareModels(reference, {&model}, corpus, {.served = settings}, two);
  ASSERT_TRUE(scored.ok() && again.ok());
  for (size_t i = 0; i < (*scored)[0].size(); ++i) {
    const ScoredToken &token = (*scored)[0][i], &other = (*again)[0][i];
    ASSERT_EQ(token.served.size(), 3u);
    EXPECT_EQ(token.position, other.position);
    EXPECT_EQ(token.served[0].total_variation, 0.0);  // halved logits have the same largest one
    // Logits halved in the model and temperature halved: the reference at T = 1/2, the model at T = 1.
    EXPECT_GT(token.served[1].total_variation, 0.0);
    for (size_t s = 0; s < settings.size(); ++s) EXPECT_EQ(token.served[s].total_variation, other.served[s].total_variation);
  }
}

TEST(CompareModelsTest, RefusesWhatCannotBeCompared) {
  SyntheticModel reference, smaller(32), shorter(64, 16);
  ThreadPool pool(1);
  const Corpus corpus = MakeCorpus(1, 32);
  EXPECT_THAT(CompareModels(reference, {&smaller}, corpus, {}, pool).status().message(), HasSubstr("found 32"));
  EXPECT_THAT(CompareModels(reference, {&shorter}, corpus, {}, pool).status().message(), HasSubstr("max_position_embeddings = 16"));
  ShiftedModel broken;
  broken.scale = std::numeric_limits<float>::infinity();
  EXPECT_THAT(CompareModels(reference, {&broken}, corpus, {}, pool).status().message(), HasSubstr("expected finite"));
}

}  // namespace
}  // namespace pith
