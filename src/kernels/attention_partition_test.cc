// Partitions: however the tokens of a tile are shared between calls, the bits are those of one call.
#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/attention_test_fixture.h"

namespace pith {
namespace {

class PartitionTest : public testing::TestWithParam<KvDtype> {};

constexpr int64_t kTokens = 2 * kAttentionPartition + 90;

std::vector<AttentionShape> LongShapes() {
  return {{.num_kv_heads = 2, .group = 3, .head_dim = 40, .num_tokens = kTokens, .scale = 0.2f},
          {.num_kv_heads = 1, .group = 7, .head_dim = 64, .num_tokens = kTokens},
          {.num_kv_heads = 1, .group = 2, .head_dim = 128, .num_tokens = kTokens, .window = kAttentionPartition + 3},
          {.num_kv_heads = 1, .group = 4, .head_dim = 64, .num_tokens = kTokens, .window = 100}};
}

// `count` rows (one tile) from position `first`, every KV head in calls of `step` partitions each, the last one first.
std::vector<uint16_t> RunSplit(const OperatorEntry* row, const AttentionInput& in, const PagedCache& cache, int64_t first, int64_t count,
                               int64_t step) {
  const AttentionShape& s = in.shape;
  const int64_t begin = AttentionFirstToken(first, s.window) / kAttentionPartition, end = AttentionPartitionEnd(first + count - 1);
  const int64_t state_floats = count * s.group * AttentionStateFloats(s.head_dim);
  GuardedBuffer<uint16_t> out(count * s.num_heads() * s.head_dim, 0xBEEF);
  std::vector<float> scratch(static_cast<size_t>(AttentionScratchFloats(s.num_heads(), s.num_kv_heads, s.head_dim)), kNaN);
  std::vector<float> states(static_cast<size_t>((end - begin) * state_floats + 16), kNaN);
  float* aligned = states.data() + (64 - reinterpret_cast<uintptr_t>(states.data()) % 64) % 64 / sizeof(float);
  for (int64_t head = 0; head < s.num_kv_heads; ++head) {
    AttentionParams p = ParamsOf(in, cache, {first, count, 0, count, head, head + 1});
    p.out = out.data();
    p.out_stride = s.num_heads() * s.head_dim;
    p.scratch = scratch.data();
    p.partial = aligned;
    p.partial_begin = begin;
    for (int64_t last = end; last > begin; last -= step) {
      p.partition_begin = std::max(begin, last - step);
      p.partition_end = last;
      row->attention(p);
    }
    EXPECT_EQ(out[head * s.group * s.head_dim], 0xBEEF) << row->name;
    row->attention_combine(p);
  }
  EXPECT_TRUE(out.Intact());
  return out.values();
}

TEST_P(PartitionTest, SplitCallsGiveTheBitsOfOneCall) {
  for (const AttentionShape& shape : LongShapes()) {
    const AttentionInput in(shape, 5);
    const PagedCache cache(GetParam(), in, 32, 5, shape.num_tokens);
    for (const OperatorEntry* row : AttentionRows(GetParam(), shape.head_dim)) {
      for (const auto& [first, count] : {std::pair<int64_t, int64_t>{kTokens - 1, 1},
                                         {kTokens - 16, 16},
                                         {2 * kAttentionPartition - 5, 9},
                                         {kAttentionPartition - 1, 2},
                                         {kAttentionPartition, 1},
                                         {kAttentionPartition - 1, 1},
                                         {30, 4}}) {
        const std::vector<uint16_t> expected = RunRows(row, in, cache, first, count);
        for (const int64_t step : {1, 2, 5}) {
          ASSERT_EQ(RunSplit(row, in, cache, first, count, step), expected)
              << row->name << ", " << Describe(shape) << ", rows " << first << " + " << count << ", " << step << " partitions per call";
        }
      }
    }
  }
}

TEST_P(PartitionTest, RowsAcrossABoundaryHaveTheBitsOfSingleRows) {
  for (const AttentionShape& shape : LongShapes()) {
    const AttentionInput in(shape, 7);
    const PagedCache cache(GetParam(), in, 16, 5, shape.num_tokens);
    for (const OperatorEntry* row : AttentionRows(GetParam(), shape.head_dim)) {
      const int64_t first = kAttentionPartition - 10;
      const std::vector<uint16_t> together = RunRows(row, in, cache, first, 30);
      std::vector<uint16_t> alone;
      for (int64_t r = 0; r < 30; ++r) {
        const std::vector<uint16_t> one = RunRows(row, in, cache, first + r, 1);
        alone.insert(alone.end(), one.begin(), one.end());
      }
      ASSERT_EQ(together, alone) << row->name << ", " << Describe(shape);
    }
  }
}

TEST_P(PartitionTest, MatchesTheDefinition) {
  for (const AttentionShape& shape : LongShapes()) {
    const AttentionInput in(shape, 13);
    const PagedCache cache(GetParam(), in, 32, 5, shape.num_tokens);
    for (const OperatorEntry* row : AttentionRows(GetParam(), shape.head_dim)) {
      for (const int64_t first : {kAttentionPartition - 4, 2 * kAttentionPartition - 4, kTokens - 4}) {
        ExpectMatchesReference(row, in, cache, RunRows(row, in, cache, first, 4), first, 1);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// The maximum moves from partition to partition by more than exp can express, up and down.
TEST_P(PartitionTest, FarScoresLeaveOneToken) {
  AttentionInput in({.head_dim = 64, .num_tokens = kTokens, .scale = 1.0f}, 2);
  std::fill(in.query.begin(), in.query.end(), 1.0f);
  std::fill(in.key.begin(), in.key.end(), -3.0f);
  for (const auto& [t, key] : {std::pair<int64_t, float>{100, 5.0f}, {700, 50.0f}, {1030, 20.0f}}) {
    std::fill_n(in.key.begin() + t * 64, 64, key);
  }
  const PagedCache cache(GetParam(), in, 32, 1, kTokens);
  for (const OperatorEntry* row : AttentionRows(GetParam(), 64)) {
    for (const auto& [position, winner] : {std::pair<int64_t, int64_t>{511, 100}, {699, 100}, {700, 700}, {kTokens - 1, 700}}) {
      const std::vector<uint16_t> out = RunRows(row, in, cache, position, 1);
      for (int64_t i = 0; i < 64; ++i) {
        const PagedCache::Stored stored = cache.At(cache.value, winner, 0, i);
        EXPECT_NEAR(FromBits(out[i]), stored.scale * stored.code, kBf16Unit * std::fabs(stored.scale * stored.code)) << row->name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(KvDtypes, PartitionTest, testing::ValuesIn(kKvDtypes), KvDtypeTestName);

}  // namespace
}  // namespace pith
