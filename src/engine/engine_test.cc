#include "engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "base/status.h"
#include "engine/synthetic_model.h"

namespace pith {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Outcome {
  std::vector<int32_t> tokens;
  std::vector<SampleResult> prompt_logprobs;
  FinishReason finish = FinishReason::kNone;
  std::string error;
};

// Steps until nothing is left, or `max_steps`.
std::map<RequestId, Outcome> Drain(Engine& engine, int max_steps = 100000) {
  std::map<RequestId, Outcome> outcomes;
  for (int step = 0; engine.HasWork() && step < max_steps; ++step) {
    const auto outputs = engine.Step();
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    if (!outputs.ok()) break;
    for (const RequestOutput& output : *outputs) {
      Outcome& outcome = outcomes[output.id];
      EXPECT_EQ(outcome.finish, FinishReason::kNone) << "output after the end of request " << output.id;
      for (const SampleResult& sample : output.tokens) outcome.tokens.push_back(sample.token);
      for (const SampleResult& sample : output.prompt_logprobs) outcome.prompt_logprobs.push_back(sample);
      outcome.finish = output.finish;
      outcome.error = output.error;
    }
  }
  return outcomes;
}

std::unique_ptr<Engine> MakeEngine(DecoderModel& model, EngineConfig config = {}) {
  if (config.kv_blocks == 0) config.kv_blocks = 64;
  auto engine = Engine::Create(model, config);
  EXPECT_TRUE(engine.ok()) << engine.status();
  return *std::move(engine);
}

Request Greedy(RequestId id, std::vector<int32_t> prompt, int64_t max_tokens) {
  Request request{.id = id, .prompt = std::move(prompt), .max_tokens = max_tokens};
  request.sampling.temperature = 0;
  return request;
}

std::vector<int32_t> RandomPrompt(uint64_t seed, int64_t length, int64_t vocab) {
  RandomStream random(seed);
  std::vector<int32_t> prompt;
  for (int64_t i = 0; i < length; ++i) prompt.push_back(static_cast<int32_t>(random.Below(static_cast<uint64_t>(vocab))));
  return prompt;
}

// What greedy decoding must give.
std::vector<int32_t> Expected(const SyntheticModel& model, std::vector<int32_t> tokens, int64_t count) {
  std::vector<int32_t> generated;
  for (int64_t i = 0; i < count; ++i) {
    generated.push_back(model.NextToken(tokens));
    tokens.push_back(generated.back());
  }
  return generated;
}

TEST(EngineTest, GreedyTokensAreTheModelsOwn) {
  SyntheticModel model;
  auto engine = MakeEngine(model);
  const std::vector<int32_t> prompt = RandomPrompt(1, 70, 64);
  ASSERT_TRUE(engine->Add(Greedy(7, prompt, 40)).ok());
  const auto outcomes = Drain(*engine);
  EXPECT_EQ(outcomes.at(7).tokens, Expected(model, prompt, 40));
  EXPECT_EQ(outcomes.at(7).finish, FinishReason::kLength);
  EXPECT_EQ(engine->metrics().kv_blocks_used, 0);
  EXPECT_EQ(engine->metrics().prompt_tokens, 70);
  EXPECT_EQ(engine->metrics().generation_tokens, 40);
}

// The same requests, whatever shares the batch, the cache, the chunk size; greedy and sampled; with penalties and preemptions.
TEST(EngineTest, TokensDoNotDependOnBatchChunkOrPreemption) {
  SyntheticModel model;
  const auto make = [](RequestId id) {
    Request request = Greedy(id, RandomPrompt(id, 5 + 23 * static_cast<int64_t>(id), 64), 30 + static_cast<int64_t>(id));
    request.sampling.seed = id;
    if (id % 2 == 0) request.sampling.temperature = 1.5f;
    if (id % 3 == 0) request.sampling.frequency_penalty = 1.0f;
    return request;
  };
  std::map<RequestId, std::vector<int32_t>> alone;
  for (RequestId id = 1; id <= 6; ++id) {
    auto engine = MakeEngine(model);
    ASSERT_TRUE(engine->Add(make(id)).ok());
    alone[id] = Drain(*engine).at(id).tokens;
    ASSERT_EQ(alone[id].size(), 30 + id);
  }
  EXPECT_NE(alone[2], alone[4]);
  int64_t preemptions = 0;
  for (const int64_t chunk : {1, 16, 64, 512}) {
    for (const int64_t blocks : {7, 64}) {
      auto engine = MakeEngine(model, {.kv_blocks = blocks, .max_batch_tokens = std::max<int64_t>(chunk, 8), .prefill_chunk = chunk});
      for (RequestId id = 1; id <= 6; ++id) ASSERT_TRUE(engine->Add(make(id)).ok());
      const auto outcomes = Drain(*engine);
      for (RequestId id = 1; id <= 6; ++id)
        EXPECT_EQ(outcomes.at(id).tokens, alone[id]) << "request " << id << " chunk " << chunk << " blocks " << blocks;
      EXPECT_EQ(engine->metrics().kv_blocks_used, 0);
      EXPECT_EQ(engine->metrics().prompt_tokens, 6 * 5 + 23 * (1 + 2 + 3 + 4 + 5 + 6)) << "chunk " << chunk << " blocks " << blocks;
      preemptions += engine->metrics().num_preemptions;
    }
  }
  EXPECT_GT(preemptions, 0) << "the small cache was meant to force preemptions";
}

TEST(EngineTest, StopsAtAStopTokenUnlessEosIsIgnoredOrTooFewTokensAreOut) {
  SyntheticModel model;
  const std::vector<int32_t> prompt = RandomPrompt(3, 4, 64);
  const std::vector<int32_t> tokens = Expected(model, prompt, 10);
  Request request = Greedy(1, prompt, 10);
  request.stop_token_ids = {tokens[2]};
  auto engine = MakeEngine(model);
  ASSERT_TRUE(engine->Add(request).ok());
  request.id = 2;
  request.sampling.ignore_eos = true;
  ASSERT_TRUE(engine->Add(request).ok());
  request.id = 3;
  request.sampling.ignore_eos = false;
  request.sampling.min_tokens = 5;
  ASSERT_TRUE(engine->Add(request).ok());
  const auto outcomes = Drain(*engine);
  EXPECT_EQ(outcomes.at(1).tokens, std::vector<int32_t>(tokens.begin(), tokens.begin() + 3));
  EXPECT_EQ(outcomes.at(1).finish, FinishReason::kStop);
  EXPECT_EQ(outcomes.at(2).tokens, tokens);
  EXPECT_GE(outcomes.at(3).tokens.size(), 5u);
  for (size_t i = 0; i < 5; ++i) EXPECT_NE(outcomes.at(3).tokens[i], tokens[2]);
}

TEST(EngineTest, AbortFreesBlocksWhereverTheRequestIs) {
  SyntheticModel model;
  auto engine = MakeEngine(model, {.max_batch_tokens = 16, .max_sequences = 1, .prefill_chunk = 16});
  ASSERT_TRUE(engine->Add(Greedy(1, RandomPrompt(1, 100, 64), 50)).ok());
  ASSERT_TRUE(engine->Add(Greedy(2, RandomPrompt(2, 10, 64), 5)).ok());
  ASSERT_TRUE(engine->Step().ok());
  EXPECT_GT(engine->metrics().kv_blocks_used, 0);
  engine->Abort(1);  // in prefill
  EXPECT_EQ(engine->metrics().kv_blocks_used, 0);
  engine->Abort(2);  // queued
  engine->Abort(3);  // unknown
  EXPECT_FALSE(engine->HasWork());
}

TEST(EngineTest, AFailingModelEndsTheRequestsOfThePassAndNothingElse) {
  SyntheticModel model;
  auto engine = MakeEngine(model, {.max_sequences = 1});
  ASSERT_TRUE(engine->Add(Greedy(1, {1, 2, 3}, 5)).ok());
  ASSERT_TRUE(engine->Add(Greedy(2, {1, 2, 3}, 5)).ok());
  model.FailWith(BugError("broken on purpose"));
  const auto outputs = engine->Step();
  ASSERT_TRUE(outputs.ok());
  ASSERT_EQ(outputs->size(), 1u);
  EXPECT_EQ(outputs->front().finish, FinishReason::kError);
  EXPECT_EQ(outputs->front().error, "broken on purpose");
  model.FailWith(absl::OkStatus());
  EXPECT_EQ(Drain(*engine).at(2).tokens, Expected(model, {1, 2, 3}, 5));
}

TEST(EngineTest, ZeroTokensRunsThePromptOnly) {
  SyntheticModel model;
  auto engine = MakeEngine(model);
  ASSERT_TRUE(engine->Add(Greedy(1, {1, 2, 3}, 0)).ok());
  const auto outcomes = Drain(*engine);
  EXPECT_TRUE(outcomes.at(1).tokens.empty());
  EXPECT_EQ(outcomes.at(1).finish, FinishReason::kLength);
}

TEST(EngineTest, PromptLogprobsAreReportedOnceWhateverTheChunksAndPreemptions) {
  SyntheticModel model;
  const std::vector<int32_t> prompt = RandomPrompt(5, 150, 64);
  std::vector<float> expected;
  for (const int64_t chunk : {512, 64, 7}) {
    auto engine = MakeEngine(model, {.kv_blocks = chunk == 7 ? 6 : 64, .max_batch_tokens = 512, .prefill_chunk = chunk});
    Request request = Greedy(1, prompt, 3);
    request.prompt_logprobs = true;
    request.sampling.logprobs = 2;
    ASSERT_TRUE(engine->Add(request).ok());
    ASSERT_TRUE(engine->Add(Greedy(2, RandomPrompt(6, 30, 64), 60)).ok());
    const Outcome outcome = Drain(*engine).at(1);
    ASSERT_EQ(outcome.prompt_logprobs.size(), prompt.size() - 1);
    std::vector<float> logprobs;
    for (size_t i = 0; i < outcome.prompt_logprobs.size(); ++i) {
      EXPECT_EQ(outcome.prompt_logprobs[i].token, prompt[i + 1]);
      EXPECT_EQ(outcome.prompt_logprobs[i].top_logprobs.size(), 2u);
      logprobs.push_back(outcome.prompt_logprobs[i].logprob);
    }
    if (expected.empty()) expected = logprobs;
    EXPECT_EQ(logprobs, expected);
    EXPECT_LE(model.largest_pass(), 512);
  }
}

TEST(EngineTest, RefusesWhatCannotRun) {
  SyntheticModel model(64, 128);
  auto engine = MakeEngine(model, {.max_model_len = 128, .kv_blocks = 3});
  const auto error = [&](Request request) { return std::string(engine->Add(std::move(request)).message()); };
  EXPECT_THAT(error(Greedy(1, {}, 4)), HasSubstr("at least one token"));
  EXPECT_THAT(error(Greedy(1, {64}, 4)), HasSubstr("[0, 64), found 64"));
  EXPECT_THAT(error(Greedy(1, {-1}, 4)), HasSubstr("found -1"));
  EXPECT_THAT(error(Greedy(1, {1}, -1)), HasSubstr("max_tokens"));
  EXPECT_THAT(error(Greedy(1, {1}, 128)), HasSubstr("context length is 128"));
  EXPECT_THAT(error(Greedy(1, {1}, INT64_MAX)), HasSubstr("context length is 128"));
  EXPECT_THAT(error(Greedy(1, {1}, 100)), HasSubstr("KV cache holds 96 tokens"));
  EXPECT_TRUE(absl::IsOutOfRange(engine->Check(Greedy(1, {1}, 128))));
  EXPECT_EQ(ErrorField(engine->Check(Greedy(1, {1}, 128))), "max_tokens");
  EXPECT_TRUE(absl::IsOutOfRange(engine->Check(Greedy(1, {1}, 100))));
  EXPECT_TRUE(absl::IsInvalidArgument(engine->Check(Greedy(1, {1}, -1))));
  Request hot = Greedy(1, {1}, 4);
  hot.sampling.temperature = 3.0f;
  EXPECT_THAT(error(hot), HasSubstr("temperature"));
  ASSERT_TRUE(engine->Add(Greedy(1, {1}, 4)).ok());
  EXPECT_THAT(error(Greedy(1, {1}, 4)), HasSubstr("the id is in use"));
  EXPECT_FALSE(Engine::Create(model, {.max_model_len = 129}).ok());
  EXPECT_FALSE(Engine::Create(model, {.kv_cache_bytes = 1}).ok());
  // The same memory holds fewer blocks of a format that takes more bytes (one element of head_dim: 2 in bf16, 1 + 4 in int8).
  EXPECT_EQ((*Engine::Create(model, {.kv_cache_bytes = 1280}))->config().kv_blocks, 10);
  auto int8 = Engine::Create(model, {.kv_cache_bytes = 1280, .kv_cache_dtype = KvDtype::kInt8});
  EXPECT_EQ((*int8)->config().kv_blocks, 4);
  EXPECT_EQ((*int8)->metrics().kv_cache_dtype, "int8");
}

// Only then does "the rest of the context" fit, whatever the cache.
TEST(EngineTest, TheContextIsNoLongerThanTheCacheUnlessAskedFor) {
  SyntheticModel model(64, 128);
  EXPECT_EQ(MakeEngine(model, {.kv_blocks = 3})->config().max_model_len, 3 * kBlockSizeTokens);
  EXPECT_EQ(MakeEngine(model, {.kv_blocks = 64})->config().max_model_len, 128);
  EXPECT_EQ(MakeEngine(model, {.max_model_len = 128, .kv_blocks = 3})->config().max_model_len, 128);
}

TEST(EngineTest, OneRequestMayFillTheWholeCache) {
  SyntheticModel model(64, 128);
  auto engine = MakeEngine(model, {.kv_blocks = 4});
  const std::vector<int32_t> prompt = RandomPrompt(9, 128, 64);
  ASSERT_TRUE(engine->Add(Greedy(1, prompt, 0)).ok());
  ASSERT_TRUE(engine->Add(Greedy(2, RandomPrompt(9, 100, 64), 28)).ok());
  const auto outcomes = Drain(*engine);
  EXPECT_EQ(outcomes.at(1).finish, FinishReason::kLength);
  EXPECT_EQ(outcomes.at(2).tokens.size(), 28u);
}

TEST(EngineTest, LongPromptsDoNotHoldUpDecoders) {
  SyntheticModel model;
  auto engine = MakeEngine(model, {.max_batch_tokens = 32, .prefill_chunk = 32});
  ASSERT_TRUE(engine->Add(Greedy(1, {1, 2}, 30)).ok());
  ASSERT_TRUE(engine->Step().ok());
  ASSERT_TRUE(engine->Add(Greedy(2, RandomPrompt(2, 300, 64), 5)).ok());
  for (int step = 0; step < 8; ++step) {
    const auto outputs = engine->Step();
    ASSERT_TRUE(outputs.ok());
    ASSERT_FALSE(outputs->empty());
    EXPECT_EQ(outputs->front().id, 1u);
  }
}

}  // namespace
}  // namespace pith
