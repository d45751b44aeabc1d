#include "eval/quality_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace pith {
namespace {

using ::testing::ElementsAre;

// Two windows of slice "a" and one of "b", all tokens but the first scored, with the given divergences.
struct Scored {
  Corpus corpus{.source = "made", .context = 4};
  std::vector<ScoredToken> tokens;

  explicit Scored(const std::vector<std::vector<double>>& kl) {
    for (size_t w = 0; w < kl.size(); ++w) {
      TokenWindow window{.slice = w == 2 ? "b" : "a", .document = static_cast<int64_t>(w), .tokens = {0}};
      for (size_t i = 0; i < kl[w].size(); ++i) {
        window.tokens.push_back(static_cast<int32_t>(10 * w + i));
        ScoredToken token{.window = static_cast<int64_t>(w), .position = static_cast<int64_t>(i) + 1};
        token.comparison = {.kl = kl[w][i], .nll_reference = 1, .nll_model = 1.5, .delta_p = i == 0 ? -0.3 : 0.4, .same_top = i == 0};
        token.comparison.reference_top = 7;
        token.served = {{.kl = kl[w][i], .total_variation = 0.25},
                        {.total_variation = i == 0 ? 0.0 : 1.0, .lost_mass = i == 0 ? 0.0 : 1.0}};
        tokens.push_back(token);
      }
      corpus.windows.push_back(window);
    }
    corpus.num_documents = static_cast<int64_t>(kl.size());
  }
};

TEST(SummarizeTest, FiguresByHand) {
  const Scored scored({{0.1, 0.2}, {0.3, 0.4}, {0.5, 0.9}});
  const ModelQuality quality = Summarize(scored.tokens, scored.corpus, {.served = {{.temperature = 0.7f}, {.temperature = 0}}, .worst = 2});
  const QualityMetrics& all = quality.overall;
  EXPECT_NEAR(all.kl_mean.value, 0.4, 1e-12);
  EXPECT_EQ(all.kl_mean.documents, 3);
  EXPECT_EQ(all.kl_median.value, 0.3);
  EXPECT_EQ(all.kl_p999.value, 0.9);
  EXPECT_EQ(all.kl_max.value, 0.9);
  EXPECT_DOUBLE_EQ(all.same_top.value, 0.5);
  EXPECT_DOUBLE_EQ(all.ppl_ratio.value, std::exp(0.5));
  EXPECT_NEAR(all.delta_p_mean.value, 0.05, 1e-12);
  EXPECT_NEAR(all.delta_p_rms.value, std::sqrt((0.09 + 0.16) / 2), 1e-12);
  ASSERT_EQ(quality.slices.size(), 2u);
  EXPECT_NEAR(quality.slices[1].second.kl_mean.value, 0.7, 1e-12);
  ASSERT_EQ(all.served.size(), 2u);
  EXPECT_NEAR(all.served[0].kl_mean.value, 0.4, 1e-12);
  EXPECT_DOUBLE_EQ(all.served[0].total_variation_mean.value, 0.25);
  EXPECT_DOUBLE_EQ(all.served[1].total_variation_mean.value, 0.5);
  EXPECT_DOUBLE_EQ(all.served[1].lost_mass_mean.value, 0.5);
  EXPECT_EQ(all.served[1].kl_mean.n, 0);
  EXPECT_EQ(quality.histogram.total(), 6);
  // Positions 1 and 2: the mean grows from .3 to .5 in one doubling.
  EXPECT_NEAR(quality.growth.slope_per_doubling.value, 0.2, 1e-12);
  EXPECT_THAT(quality.worst,
              ElementsAre(WorstToken{.kl = 0.9, .document = 2, .window = 2, .position = 2, .next_token = 21, .reference_top = 7},
                          WorstToken{.kl = 0.5, .document = 2, .window = 2, .position = 1, .next_token = 20, .reference_top = 7}));
}

TEST(SummarizeTest, JsonHasWhatScriptsReadAndKlOnlyWhereItHasAMeaning) {
  const Scored scored({{0.1, 0.2}, {0.3, 0.4}, {0.5, 0.9}});
  const ModelQuality quality = Summarize(scored.tokens, scored.corpus,
                                         {.served = {{.temperature = 0.7f, .top_k = 9}, {.temperature = 0}}, .worst = 1});
  const OrderedJson json = ToJson(quality, scored.corpus);
  EXPECT_EQ(json.at("metrics").at("kl_p999").at("value"), 0.9);
  EXPECT_EQ(json.at("slices").at("a").at("kl_mean").at("n"), 4);
  const OrderedJson& served = json.at("metrics").at("served");
  EXPECT_EQ(served[0].at("temperature"), 0.7);
  EXPECT_EQ(served[0].at("top_k"), 9);
  EXPECT_TRUE(served[0].contains("kl_mean"));
  EXPECT_FALSE(served[0].contains("top_p"));
  EXPECT_FALSE(served[1].contains("kl_mean"));
  EXPECT_EQ(json.at("worst_tokens")[0].at("slice"), "b");
  EXPECT_EQ(json.at("kl_growth").at("bins").size(), 2u);
  EXPECT_TRUE(json.at("kl_histogram").contains("counts"));
  EXPECT_FALSE(ToJson(Summarize(scored.tokens, scored.corpus, {}).overall).contains("served"));
}

}  // namespace
}  // namespace pith
