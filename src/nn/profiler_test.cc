#include "nn/profiler.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

void Sleep(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

TEST(ProfilerTest, RecordsAreInOrderAndCarryWhatDescribeSays) {
  Profiler profiler;
  profiler.BeginPass();
  profiler.EndOperator("qkv", 3, 7, 2, [](OperatorRecord& record) {
    record.kernel = "row";
    record.work = {.weight_bytes = 100, .activation_bytes = 20, .kv_bytes = 3, .operations = 5};
  });
  profiler.EndOperator("o", 3, 7, 2, [](OperatorRecord&) {});
  ASSERT_EQ(profiler.records().size(), 2u);
  const OperatorRecord& first = profiler.records()[0];
  EXPECT_STREQ(first.name, "qkv");
  EXPECT_EQ(first.layer, 3);
  EXPECT_EQ(first.rows, 7);
  EXPECT_EQ(first.threads, 2);
  EXPECT_EQ(first.kernel, "row");
  EXPECT_EQ(first.work.bytes(), 123);
  EXPECT_STREQ(profiler.records()[1].name, "o");
  EXPECT_EQ(profiler.num_passes(), 1);
}

TEST(ProfilerTest, AnOperatorBeginsWhereThePreviousEndedAndDescribingCountsForNone) {
  Profiler profiler;
  profiler.BeginPass();
  Sleep(20);
  profiler.EndOperator("a", -1, 1, 1, [](OperatorRecord&) { Sleep(200); });
  Sleep(20);
  profiler.EndOperator("b", -1, 1, 1, [](OperatorRecord&) {});
  const OperatorRecord &a = profiler.records()[0], &b = profiler.records()[1];
  EXPECT_GE(a.duration_ns(), 20'000'000);
  EXPECT_GE(b.begin_ns, a.end_ns + 200'000'000);
  EXPECT_GE(b.duration_ns(), 20'000'000);
  EXPECT_LT(b.duration_ns(), b.end_ns - a.end_ns - 190'000'000);
}

TEST(ProfilerTest, ClearForgetsRecordsAndPasses) {
  Profiler profiler;
  profiler.BeginPass();
  profiler.EndOperator("a", -1, 1, 1, [](OperatorRecord&) {});
  profiler.Clear();
  EXPECT_TRUE(profiler.records().empty());
  EXPECT_EQ(profiler.num_passes(), 0);
}

}  // namespace
}  // namespace pith
