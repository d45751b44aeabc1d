#include "eval/answer_runner.h"

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"
#include "engine/synthetic_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tokenizer/test_byte_tokenizer.h"

namespace pith {
namespace {

using testing::HasSubstr;

class AnswerRunnerTest : public testing::Test {
 protected:
  AnswerRunnerTest() : store_(*ResultStore::Open(":memory:")) {
    for (int i = 0; i < 7; ++i) {
      RandomStream random(static_cast<uint64_t>(i));
      GenerationQuestion question{.id = absl::StrCat("q", i), .max_tokens = 20};
      for (int t = 0; t < 3 + 5 * i; ++t) question.prompt.push_back(static_cast<int32_t>(random.Below(128)));
      questions_.push_back(std::move(question));
    }
    options_.sampling.temperature = 1;
    options_.model_id = "synthetic";
  }

  std::unique_ptr<Engine> MakeEngine(int64_t max_sequences = 4) {
    return *Engine::Create(model_, {.kv_blocks = 64, .max_batch_tokens = 32, .max_sequences = max_sequences, .prefill_chunk = 8});
  }
  std::vector<std::vector<GeneratedAnswer>> Generate(int64_t max_sequences = 4) {
    const auto engine = MakeEngine(max_sequences);
    auto answers = GenerateAnswers(*engine, tokenizer_, questions_, options_);
    EXPECT_TRUE(answers.ok()) << answers.status();
    return answers.ok() ? *std::move(answers) : std::vector<std::vector<GeneratedAnswer>>();
  }

  SyntheticModel model_{128};
  ByteTokenizer tokenizer_{false};
  std::unique_ptr<ResultStore> store_;
  std::vector<GenerationQuestion> questions_;
  AnswerOptions options_;
};

TEST_F(AnswerRunnerTest, AnswersAreThoseOfTheModel) {
  options_.sampling.temperature = 0;
  const auto answers = Generate();
  ASSERT_EQ(answers.size(), questions_.size());
  for (size_t i = 0; i < answers.size(); ++i) {
    std::vector<int32_t> tokens = questions_[i].prompt;
    std::string text;
    for (int t = 0; t < 20; ++t) {
      tokens.push_back(model_.NextToken(tokens));
      text += tokenizer_.TokenBytes(tokens.back());
    }
    ASSERT_EQ(answers[i].size(), 1u);
    EXPECT_EQ(answers[i][0], (GeneratedAnswer{.text = text, .tokens = 20, .cut_off = true})) << i;
  }
}

TEST_F(AnswerRunnerTest, AnAnswerDoesNotDependOnItsCompany) {
  options_.samples = 3;
  const auto together = Generate(4);
  EXPECT_EQ(Generate(1), together);
  const std::vector<GenerationQuestion> all = questions_;
  for (size_t i : {6u, 2u}) {
    questions_ = {all[i]};
    EXPECT_EQ(Generate()[0], together[i]);
  }
}

TEST_F(AnswerRunnerTest, SamplesAndSeedsDiffer) {
  options_.samples = 2;
  const auto one = Generate();
  EXPECT_NE(one[0][0].text, one[0][1].text);
  options_.sampling.seed = 2;
  EXPECT_NE(Generate()[0][0].text, one[0][0].text);
  EXPECT_NE(SampleSeed(1, "a", 0), SampleSeed(1, "a", 1));
  EXPECT_NE(SampleSeed(1, "a", 0), SampleSeed(1, "b", 0));
  EXPECT_NE(SampleSeed(1, "a", 0), SampleSeed(2, "a", 0));
}

TEST_F(AnswerRunnerTest, EndsBeforeAStopStringAndAtAStopToken) {
  options_.sampling.temperature = 0;
  const std::string text = Generate()[3][0].text;
  ASSERT_EQ(text.size(), 20u);
  questions_[3].stop = {text.substr(5, 3)};
  const size_t stop = text.find(text.substr(5, 3));
  const auto stopped = Generate()[3][0];
  EXPECT_EQ(stopped.text, text.substr(0, stop));
  EXPECT_FALSE(stopped.cut_off);
  questions_[3].stop.clear();
  options_.stop_token_ids = {static_cast<unsigned char>(text[7])};
  const auto ended = Generate()[3][0];
  EXPECT_EQ(ended.text, text.substr(0, text.find(text[7])));
  EXPECT_FALSE(ended.cut_off);
}

TEST_F(AnswerRunnerTest, GoesOnWhereItWasInterrupted) {
  options_.samples = 2;
  const auto expected = Generate();
  options_.store = store_.get();
  options_.progress = [](int64_t done) { return done < 5 ? absl::OkStatus() : CancelledError("interrupted"); };
  EXPECT_EQ(GenerateAnswers(*MakeEngine(), tokenizer_, questions_, options_).status().code(), absl::StatusCode::kCancelled);
  const int64_t kept = *store_->Size();
  EXPECT_GE(kept, 5);
  EXPECT_LT(kept, 14);
  int64_t last = 0;
  options_.progress = [&](int64_t done) {
    EXPECT_GE(done, last);
    last = done;
    return absl::OkStatus();
  };
  EXPECT_EQ(Generate(), expected);
  EXPECT_EQ(last, 14);
  EXPECT_EQ(*store_->Size(), 14);
  // Now nothing is left for the model to do.
  const int64_t forwards = model_.forwards();
  EXPECT_EQ(Generate(), expected);
  EXPECT_EQ(model_.forwards(), forwards);
}

TEST_F(AnswerRunnerTest, WhatWasStoredForOtherConditionsIsNotTaken) {
  options_.store = store_.get();
  Generate();
  const auto asks_again = [&] {
    const int64_t before = model_.forwards();
    Generate();
    return model_.forwards() > before;
  };
  EXPECT_FALSE(asks_again());
  options_.sampling.temperature = 0.5f;
  EXPECT_TRUE(asks_again());
  options_.model_id = "another";
  EXPECT_TRUE(asks_again());
  questions_[0].max_tokens = 19;
  EXPECT_TRUE(asks_again());
  questions_[0].stop = {"x"};
  EXPECT_TRUE(asks_again());
  questions_[0].prompt[0] ^= 1;
  EXPECT_TRUE(asks_again());
  options_.stop_token_ids = {3};
  EXPECT_TRUE(asks_again());
  options_.sampling.seed = 9;
  EXPECT_TRUE(asks_again());
  EXPECT_FALSE(asks_again());
}

TEST_F(AnswerRunnerTest, NamesTheQuestionThatCannotBeAsked) {
  questions_[4].prompt.clear();
  const absl::Status empty = GenerateAnswers(*MakeEngine(), tokenizer_, questions_, options_).status();
  EXPECT_EQ(empty.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(empty.message()), HasSubstr("q4"));
}

TEST_F(AnswerRunnerTest, AFailingModelEndsTheRun) {
  const auto engine = MakeEngine();
  model_.FailWith(BugError("broken row"));
  const absl::Status failed = GenerateAnswers(*engine, tokenizer_, questions_, options_).status();
  EXPECT_EQ(failed.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(failed.message()), HasSubstr("broken row"));
}

TEST_F(AnswerRunnerTest, ScoresContinuations) {
  std::vector<LikelihoodQuestion> scored;
  for (const GenerationQuestion& question : questions_) {
    LikelihoodQuestion greedy{.id = question.id, .prompt = question.prompt};
    std::vector<int32_t> tokens = question.prompt;
    for (int t = 0; t < 4; ++t) {
      greedy.continuation.push_back(model_.NextToken(tokens));
      tokens.push_back(greedy.continuation.back());
    }
    LikelihoodQuestion other = greedy;
    other.continuation[1] = (other.continuation[1] + 1) % 128;
    scored.push_back(greedy);
    scored.push_back(other);
  }
  options_.store = store_.get();
  const auto engine = MakeEngine();
  const auto likelihoods = ScoreContinuations(*engine, scored, options_);
  ASSERT_TRUE(likelihoods.ok()) << likelihoods.status();
  ASSERT_EQ(likelihoods->size(), scored.size());
  for (size_t i = 0; i < scored.size(); i += 2) {
    EXPECT_TRUE((*likelihoods)[i].greedy) << i;
    EXPECT_FALSE((*likelihoods)[i + 1].greedy) << i;
    EXPECT_LT((*likelihoods)[i].log_probability, 0);
    EXPECT_GT((*likelihoods)[i].log_probability, (*likelihoods)[i + 1].log_probability);
  }
  // One token after another gives the same as all at once.
  double sum = 0;
  for (size_t t = 0; t < 4; ++t) {
    LikelihoodQuestion step{.id = "step", .prompt = scored[0].prompt, .continuation = {scored[0].continuation[t]}};
    step.prompt.insert(step.prompt.end(), scored[0].continuation.begin(), scored[0].continuation.begin() + static_cast<int64_t>(t));
    sum += (*ScoreContinuations(*engine, {step}, options_))[0].log_probability;
  }
  EXPECT_NEAR(sum, (*likelihoods)[0].log_probability, 1e-4);
  const auto again = *ScoreContinuations(*engine, scored, options_);
  for (size_t i = 0; i < scored.size(); ++i) {
    EXPECT_EQ(again[i].log_probability, (*likelihoods)[i].log_probability);
    EXPECT_EQ(again[i].greedy, (*likelihoods)[i].greedy);
  }
}

}  // namespace
}  // namespace pith
