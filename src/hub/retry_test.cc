#include "hub/retry.h"

#include <csignal>
#include <vector>

#include "base/interrupt.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

struct Recorder {
  std::vector<double> delays;
  RetryPolicy policy;
  Recorder() {
    policy.sleep = [this](double seconds) {
      delays.push_back(seconds);
      return absl::OkStatus();
    };
  }
};

TEST(Retry, DelaysDoubleUpToALimitAndThenItGivesUp) {
  Recorder recorder;
  recorder.policy.max_attempts = 9;
  RetryState state(recorder.policy);
  absl::Status status;
  while (status.ok()) status = state.WaitAfter(UnavailableError("HTTP 503"), std::nullopt);
  ASSERT_EQ(recorder.delays.size(), 8);
  const double full[] = {1, 2, 4, 8, 16, 30, 30, 30};
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_GE(recorder.delays[i], full[i] / 2);
    EXPECT_LE(recorder.delays[i], full[i]);
  }
  EXPECT_EQ(ToExitCode(status), kExitUnavailable);
  EXPECT_EQ(status.message(), "HTTP 503 (9 attempts)");
}

TEST(Retry, TheServersWaitIsHonouredWithinReason) {
  Recorder recorder;
  RetryState state(recorder.policy);
  EXPECT_TRUE(state.WaitAfter(UnavailableError("HTTP 429"), 7).ok());
  EXPECT_TRUE(state.WaitAfter(UnavailableError("HTTP 429"), 0).ok());
  EXPECT_EQ(recorder.delays, (std::vector<double>{7, 0}));
  EXPECT_THAT(std::string(state.WaitAfter(UnavailableError("HTTP 429"), 3600).message()), HasSubstr("3600 s"));
}

TEST(Retry, ProgressStartsTheCountAgain) {
  Recorder recorder;
  recorder.policy.max_attempts = 2;
  RetryState state(recorder.policy);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(state.WaitAfter(UnavailableError("cut"), std::nullopt).ok());
    state.Progress();
  }
  EXPECT_LE(*std::max_element(recorder.delays.begin(), recorder.delays.end()), 1);
}

TEST(Retry, OtherErrorsAreFinal) {
  Recorder recorder;
  RetryState state(recorder.policy);
  EXPECT_EQ(state.WaitAfter(BadFileError("x"), std::nullopt).code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(recorder.delays.empty());
}

TEST(Retry, CtrlCAndCancelEndTheWait) {
  const RetryPolicy policy{.first_delay_s = 1000, .max_delay_s = 1000};
  SetInterruptSignal(SIGINT);
  EXPECT_TRUE(absl::IsCancelled(RetryState(policy).WaitAfter(UnavailableError("x"), std::nullopt)));
  SetInterruptSignal(0);
  const std::atomic<bool> cancel{true};
  EXPECT_TRUE(absl::IsCancelled(RetryState(policy, &cancel).WaitAfter(UnavailableError("x"), std::nullopt)));
}

}  // namespace
}  // namespace pith
