#include "nn/compute_context.h"

#include <atomic>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(ComputeContext, ForRowsCoversEveryRowOnce) {
  ThreadPool pool(3);
  const ComputeContext context = MakeComputeContext(&pool, Isa::kScalar);
  for (const int64_t rows : {0, 1, 2, 100, 1001}) {
    for (const int64_t elements : {1, 100000}) {
      std::vector<std::atomic<int>> seen(rows);
      context.ForRows(rows, elements, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) ++seen[r];
      });
      for (const auto& count : seen) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ComputeContext, SmallWorkStaysOnTheCaller) {
  ThreadPool pool(3);
  const ComputeContext context = MakeComputeContext(&pool, Isa::kScalar);
  int calls = 0;
  context.ForRows(4, 64, [&](int64_t begin, int64_t end) {
    ++calls;
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 4);
  });
  EXPECT_EQ(calls, 1);
}

TEST(ComputeContext, HasEveryOperator) {
  ThreadPool pool(1);
  const ComputeContext context = MakeComputeContext(&pool, DetectIsa());
  EXPECT_EQ(context.isa, DetectIsa());
  EXPECT_TRUE(context.operators.rms_norm && context.operators.rotary && context.operators.gated_activation && context.operators.embedding &&
              context.operators.convert);
}

}  // namespace
}  // namespace pith
