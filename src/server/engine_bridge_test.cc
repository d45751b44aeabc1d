#include "server/engine_bridge.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>

#include "base/status.h"
#include "engine/synthetic_model.h"

namespace pith {
namespace {

std::unique_ptr<EngineBridge> MakeBridge(SyntheticModel& model, int64_t max_waiting = 100) {
  auto engine = Engine::Create(model, {.kv_blocks = 64});
  EXPECT_TRUE(engine.ok());
  return std::make_unique<EngineBridge>(*std::move(engine), max_waiting);
}

Request MakeRequest(int64_t max_tokens) {
  Request request{.prompt = {1, 2, 3}, .max_tokens = max_tokens};
  request.sampling.temperature = 0;
  return request;
}

// Collects the outputs of one request; its future is ready at the end.
struct Collector {
  std::vector<int32_t> tokens;
  std::promise<FinishReason> finished;

  EngineBridge::OnOutput Callback() {
    return [this](RequestOutput output) {
      for (const SampleResult& sample : output.tokens) tokens.push_back(sample.token);
      if (output.finish != FinishReason::kNone) finished.set_value(output.finish);
    };
  }
};

TEST(EngineBridgeTest, RunsRequestsOfManyThreads) {
  SyntheticModel model;
  const auto bridge = MakeBridge(model);
  std::vector<Collector> collectors(20);
  std::vector<std::thread> threads;
  for (Collector& collector : collectors) {
    threads.emplace_back([&] { ASSERT_TRUE(bridge->Submit({{MakeRequest(20), collector.Callback()}}).ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  for (Collector& collector : collectors) {
    EXPECT_EQ(collector.finished.get_future().get(), FinishReason::kLength);
    EXPECT_EQ(collector.tokens, collectors[0].tokens);
  }
  while (bridge->num_live() > 0) std::this_thread::yield();
}

TEST(EngineBridgeTest, AbortIsReportedOnce) {
  SyntheticModel model;
  const auto bridge = MakeBridge(model);
  Collector collector;
  const auto ids = bridge->Submit({{MakeRequest(500), collector.Callback()}});
  ASSERT_TRUE(ids.ok());
  bridge->Abort(ids->front());
  bridge->Abort(ids->front());
  const FinishReason reason = collector.finished.get_future().get();
  EXPECT_TRUE(reason == FinishReason::kAborted || reason == FinishReason::kLength);
}

TEST(EngineBridgeTest, RefusesAllOrNothing) {
  SyntheticModel model;
  const auto bridge = MakeBridge(model, 2);
  Collector collector;
  std::mutex gate;  // while it is held, the first output holds up the engine
  const auto make = [&](int count) {
    std::vector<EngineBridge::Submission> submissions;
    for (int i = 0; i < count; ++i) {
      submissions.push_back({MakeRequest(5), [&, on_output = collector.Callback()](RequestOutput output) {
                               const std::lock_guard wait(gate);
                               on_output(std::move(output));
                             }});
    }
    return submissions;
  };
  EXPECT_EQ(ErrorField(bridge->Submit(make(3)).status()), "n");  // more than the queue ever holds
  {
    const std::lock_guard hold(gate);
    ASSERT_TRUE(bridge->Submit(make(1)).ok());
    EXPECT_TRUE(absl::IsResourceExhausted(bridge->Submit(make(2)).status()));
    EXPECT_EQ(bridge->num_live(), 1);
  }
  EXPECT_EQ(collector.finished.get_future().get(), FinishReason::kLength);
  EXPECT_EQ(ErrorField(bridge->Submit({{MakeRequest(-1), collector.Callback()}}).status()), "max_tokens");
  bridge->StartDraining();
  EXPECT_TRUE(absl::IsUnavailable(bridge->Submit({{MakeRequest(5), collector.Callback()}}).status()));
  bridge->Stop();  // no callback runs when what it refers to goes
}

TEST(EngineBridgeTest, StopEndsWhatRuns) {
  SyntheticModel model;
  auto bridge = MakeBridge(model);
  std::vector<Collector> collectors(4);
  for (Collector& collector : collectors) ASSERT_TRUE(bridge->Submit({{MakeRequest(500), collector.Callback()}}).ok());
  bridge->Stop();
  for (Collector& collector : collectors) {
    auto future = collector.finished.get_future();
    EXPECT_EQ(future.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  }
}

TEST(EngineBridgeTest, AFailingModelEndsItsRequestsWithAnErrorAndTheThreadLivesOn) {
  SyntheticModel model;
  model.FailWith(BugError("broken on purpose"));
  const auto bridge = MakeBridge(model);
  Collector collector;
  ASSERT_TRUE(bridge->Submit({{MakeRequest(5), collector.Callback()}}).ok());
  EXPECT_EQ(collector.finished.get_future().get(), FinishReason::kError);
  EXPECT_TRUE(bridge->MakesProgress(std::chrono::seconds(5)));
}

}  // namespace
}  // namespace pith
