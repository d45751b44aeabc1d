#include "kernels/attention.h"

#include <bit>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/attention_test_fixture.h"

namespace pith {
namespace {

// All rows, `chunk` rows per call; no call's cache holds a token after the call's last row.
std::vector<uint16_t> RunChunked(const OperatorEntry* row, const AttentionInput& in, int64_t block_size, uint64_t seed, int64_t chunk) {
  std::vector<uint16_t> all;
  PagedCache cache(row->kv_dtype, in, block_size, seed, 0);
  for (int64_t first = 0; first < in.shape.num_tokens; first += chunk) {
    const int64_t count = std::min(chunk, in.shape.num_tokens - first);
    cache.Append(in, count);
    const std::vector<uint16_t> rows = RunRows(row, in, cache, first, count);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

std::vector<AttentionShape> Shapes() {
  std::vector<AttentionShape> shapes;
  for (int64_t group : {1, 2, 3, 4, 7, 8}) {
    for (int64_t head_dim : {8, 40, 64, 96, 128, 256}) {
      if (group * head_dim % 11 > 6) continue;  // every group and every head_dim, half of the pairs
      const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
      shapes.push_back({.num_kv_heads = group < 4 ? 2 : 1, .group = group, .head_dim = head_dim, .num_tokens = 150, .scale = scale});
    }
  }
  for (int64_t window : {1, 5, 64, 65, 100}) {
    for (int64_t head_dim : {40, 96}) {
      shapes.push_back({.num_kv_heads = 2, .group = 3, .head_dim = head_dim, .num_tokens = 210, .window = window, .scale = 0.2f});
    }
  }
  return shapes;
}

class AttentionTest : public testing::TestWithParam<KvDtype> {};

TEST_P(AttentionTest, MatchesTheDefinition) {
  for (const AttentionShape& shape : Shapes()) {
    const AttentionInput in(shape, 11);
    const PagedCache cache(GetParam(), in, 32, 5, shape.num_tokens);
    for (const OperatorEntry* row : AttentionRows(GetParam(), shape.head_dim)) {
      ExpectMatchesReference(row, in, cache, RunRows(row, in, cache, 0, shape.num_tokens), 0, 11);
      if (HasFatalFailure()) return;
    }
  }
}

// The same bits whatever rows share the call, wherever the blocks lie and however large they are. The calls' caches end with the call's
// last token, the whole prompt's does not: nothing after a row may reach it.
TEST_P(AttentionTest, BitsOfARowDoNotDependOnTheCall) {
  for (const AttentionShape& shape : Shapes()) {
    const AttentionInput in(shape, 23);
    const PagedCache cache(GetParam(), in, 32, 5, shape.num_tokens);
    for (const OperatorEntry* row : AttentionRows(GetParam(), shape.head_dim)) {
      const std::vector<uint16_t> whole = RunRows(row, in, cache, 0, shape.num_tokens);
      for (const auto& [chunk, block_size] : {std::pair<int64_t, int64_t>{1, 32}, {7, 16}, {16, 64}, {64, 128}, {33, 8}}) {
        if (row->isa == KernelIsa::kScalar && chunk % 33 != 1) continue;  // slow
        ASSERT_EQ(RunChunked(row, in, block_size, 100 + static_cast<uint64_t>(chunk), chunk), whole)
            << row->name << ", " << Describe(shape) << ", chunks of " << chunk << ", blocks of " << block_size;
      }
    }
  }
}

// Integer sums are exact and the softmax is the same, so tiles and vectors of AVX-512 agree to the last bit.
TEST(IntegerAttention, TilesGiveTheBitsOfVectors) {
  int compared = 0;
  for (const AttentionShape& shape : Shapes()) {
    const AttentionInput in(shape, 31);
    const PagedCache cache(KvDtype::kInt8, in, 32, 5, shape.num_tokens);
    std::vector<uint16_t> first;
    for (const OperatorEntry* row : AttentionRows(KvDtype::kInt8, shape.head_dim)) {
      if (row->isa < KernelIsa::kAvx512Vnni) continue;
      const std::vector<uint16_t> out = RunRows(row, in, cache, 0, shape.num_tokens);
      compared += first.empty() ? 0 : 1;
      if (first.empty()) first = out;
      ASSERT_EQ(out, first) << row->name << ", " << Describe(shape);
    }
  }
  if (compared == 0) GTEST_SKIP() << "this CPU has no tiles";
}

TEST_P(AttentionTest, ComputesOnlyTheAskedHeadsAndRows) {
  const AttentionShape shape{.num_kv_heads = 3, .group = 2, .head_dim = 64, .num_tokens = 90};
  const AttentionInput in(shape, 3);
  const PagedCache cache(GetParam(), in, 32, 4, shape.num_tokens);
  for (const OperatorEntry* row : AttentionRows(GetParam(), shape.head_dim)) {
    const std::vector<uint16_t> whole = RunRows(row, in, cache, 0, shape.num_tokens);
    const Call call{.first_position = 10, .num_rows = 80, .row_begin = 5, .row_end = 47, .kv_head_begin = 1, .kv_head_end = 2};
    const std::vector<uint16_t> part = RunCall(row, in, cache, call);
    const int64_t width = shape.num_heads() * shape.head_dim;
    for (int64_t r = 0; r < call.num_rows; ++r) {
      for (int64_t i = 0; i < width; ++i) {
        const bool asked = r >= 5 && r < 47 && i / shape.head_dim / shape.group == 1;
        const uint16_t expected = asked ? whole[static_cast<size_t>((10 + r) * width + i)] : 0xBEEF;
        ASSERT_EQ(part[static_cast<size_t>(r * width + i)], expected) << row->name << " row " << r << " element " << i;
      }
    }
  }
}

TEST_P(AttentionTest, OneRowWithNaNDoesNotReachTheOthers) {
  const AttentionShape shape{.num_kv_heads = 1, .group = 2, .head_dim = 64, .num_tokens = 100};
  const AttentionInput clean(shape, 8);
  AttentionInput poisoned = clean;  // token 40 has a NaN query in head 1, and NaN key and value, as one bad activation row would
  poisoned.query[40 * shape.query_stride() + shape.head_dim + 5] = kNaN;
  poisoned.key[40 * shape.head_dim + 1] = poisoned.value[40 * shape.head_dim + 2] = kNaN;
  const PagedCache cache(GetParam(), clean, 32, 1, 100), poisoned_cache(GetParam(), poisoned, 32, 1, 100);
  for (const OperatorEntry* row : AttentionRows(GetParam(), shape.head_dim)) {
    const int64_t width = shape.num_heads() * shape.head_dim;
    const std::vector<uint16_t> expected = RunRows(row, clean, cache, 0, 100);
    const std::vector<uint16_t> got = RunRows(row, poisoned, poisoned_cache, 0, 100);
    for (int64_t i = 0; i < 40 * width; ++i) ASSERT_EQ(got[i], expected[i]) << row->name << " element " << i;
    for (int64_t i = 40 * width; i < 100 * width; ++i) ASSERT_TRUE(std::isnan(FromBits(got[i]))) << row->name << " element " << i;

    AttentionInput bad_query = clean;  // any NaN, also one whose payload is all ones
    bad_query.query[40 * shape.query_stride() + 3] = std::bit_cast<float>(0x7FFFFFFF);
    bad_query.query[41 * shape.query_stride() + shape.head_dim] = -kNaN;
    const std::vector<uint16_t> other = RunRows(row, bad_query, cache, 0, 100);
    for (int64_t i = 0; i < 100 * width; ++i) {
      if (i / shape.head_dim == 40 * 2 || i / shape.head_dim == 41 * 2 + 1) {
        ASSERT_TRUE(std::isnan(FromBits(other[i]))) << row->name << " element " << i;
      } else {
        ASSERT_EQ(other[i], expected[i]) << row->name << " element " << i;
      }
    }
  }
}

// A NaN value alone, without a NaN key, and a value beyond every format reach the rows that see them, and the others not.
TEST_P(AttentionTest, NaNAndInfiniteValuesReachWhoSeesThem) {
  for (const int64_t head_dim : {40, 64}) {
    const AttentionShape shape{.num_kv_heads = 1, .group = 3, .head_dim = head_dim, .num_tokens = 70, .window = 20};
    for (const float bad : {kNaN, INFINITY}) {
      AttentionInput in(shape, 9);
      in.value[30 * head_dim + 7] = bad;
      const PagedCache cache(GetParam(), in, 16, 1, 70);
      for (const OperatorEntry* row : AttentionRows(GetParam(), head_dim)) {
        const std::vector<uint16_t> out = RunRows(row, in, cache, 0, 70);
        for (int64_t r = 0; r < 70; ++r) {
          const float value = FromBits(out[static_cast<size_t>(r * 3 * head_dim + 7)]);
          EXPECT_EQ(std::isfinite(value), r < 30 || r >= 50) << row->name << " row " << r;
        }
      }
    }
  }
}

// Sums of a chunk that end below the normal numbers: a zero has the same sign whether a row stands alone or beside others that see further
// tokens. The last two tokens cancel to less than the smallest normal number.
TEST(TileAttention, ZerosHaveTheSameSignBesideOtherRows) {
  const AttentionShape shape{.num_kv_heads = 1, .group = 1, .head_dim = 32, .num_tokens = 100, .scale = 1.0f};
  AttentionInput in(shape, 1);
  std::fill(in.query.begin(), in.query.end(), 0.0f);
  std::fill(in.key.begin(), in.key.end(), 0.0f);
  std::fill(in.value.begin(), in.value.end(), 0.0f);
  std::fill_n(in.value.begin(), 64 * 32, -1.0f);
  in.key[64 * 32] = in.key[65 * 32] = in.key[65 * 32 + 1] = 1.0f;
  const auto factor = [](int64_t i) { return 1.0f + static_cast<float>(i) / 128.0f; };
  for (int64_t i = 0; i < 32; ++i) {
    in.value[64 * 32 + i] = -0.75f * 0x1p-112f;
    in.value[65 * 32 + i] = factor(i) * 0x1p-112f;
  }
  const PagedCache cache(KvDtype::kBf16, in, 32, 1, 100);
  float* query = in.query.data() + 84 * shape.query_stride();
  int compared = 0;
  for (int64_t i = 0; i < 32; ++i) {
    for (int step = -40; step < 40; ++step) {
      query[0] = 200.0f;
      query[1] = std::log(0.75f / factor(i)) + static_cast<float>(step) * 0x1p-16f;
      for (const OperatorEntry* row : AttentionRows(KvDtype::kBf16, 32)) {
        if (row->isa != KernelIsa::kAmx) continue;
        const std::vector<uint16_t> together = RunRows(row, in, cache, 84, 16), alone = RunRows(row, in, cache, 84, 1);
        ASSERT_EQ(alone, std::vector<uint16_t>(together.begin(), together.begin() + 32)) << i << " " << step;
        ++compared;
      }
    }
  }
  if (compared == 0) GTEST_SKIP() << "this CPU has no tiles";
}

// Query, caches and table end where the readable memory ends, the last token in the last slot of the last block.
TEST_P(AttentionTest, ReadsNothingBeyondItsInputs) {
  for (int64_t head_dim : {8, 24, 40, 64, 72, 96, 128}) {
    const AttentionShape shape{.num_kv_heads = 2, .group = 3, .head_dim = head_dim, .num_tokens = 96, .scale = 1.0f};
    AttentionInput in(shape, 17);
    in.query.resize(in.query.size() - 3);  // the gap after the last row
    std::fill(in.key.begin(), in.key.end(), 0.5f);
    std::fill(in.value.begin(), in.value.end(), -0.25f);
    PagedCache cache(GetParam(), in, 32, 5, 0);
    cache.block_table = {0, 1, 2};
    cache.Append(in, 96);
    const auto used = static_cast<size_t>(2 * cache.block_stride + cache.head_stride +
                                          32 * (head_dim * KvElementBytes(GetParam()) + KvScaleBytes(GetParam())));
    cache.key.resize(used);
    cache.value.resize(used);
    const PageEndBuffer<float> query(in.query);
    const PageEndBuffer<uint8_t> key(cache.key), value(cache.value);
    const PageEndBuffer<int32_t> table(cache.block_table);
    for (const OperatorEntry* row : AttentionRows(GetParam(), head_dim)) {
      std::vector<uint16_t> out(static_cast<size_t>(96 * 6 * head_dim));
      std::vector<float> scratch(static_cast<size_t>(AttentionScratchFloats(6, 2, head_dim)));
      AttentionParams p = ParamsOf(in, cache, {0, 96, 0, 96, 0, 2});
      p.query = query.data();
      p.out = out.data();
      p.out_stride = 6 * head_dim;
      p.key_cache = key.data();
      p.value_cache = value.data();
      p.block_table = table.data();
      p.scratch = scratch.data();
      row->attention(p);
      EXPECT_THAT(out, testing::Each(ToBits(-0.25f))) << row->name << " head_dim " << head_dim;
    }
  }
}

TEST_P(AttentionTest, HandComputed) {
  // Two tokens, scores 0 and ln 3 for the second row: weights 1/4 and 3/4. The first row sees itself only. Values that every format holds.
  AttentionInput in({.head_dim = 8, .num_tokens = 2, .scale = 0.5f}, 1);
  std::fill(in.query.begin(), in.query.end(), 0.0f);
  in.query[in.shape.query_stride()] = 2.0f * std::log(3.0f);
  in.key.assign(16, 0.0f);
  in.key[8] = 1.0f;
  for (int64_t i = 0; i < 16; ++i) in.value[i] = i < 8 ? 4.0f * static_cast<float>(i) : 8.0f;
  in.value[7] = GetParam() == KvDtype::kFp8 ? 448.0f / 16 : 127.0f / 4;  // a power of two as scale
  const PagedCache cache(GetParam(), in, 32, 1, 2);
  for (const OperatorEntry* row : AttentionRows(GetParam(), 8)) {
    const std::vector<uint16_t> out = RunRows(row, in, cache, 0, 2);
    for (int64_t i = 0; i < 8; ++i) {
      EXPECT_EQ(FromBits(out[i]), in.value[i]) << row->name;
      EXPECT_EQ(FromBits(out[8 + i]), in.value[i] / 4 + 6.0f) << row->name;
    }
  }
}

TEST_P(AttentionTest, FarScoresLeaveOneToken) {
  // One key in each chunk stands out by far more than exp can express; later and higher ones must displace earlier ones.
  AttentionInput in({.head_dim = 64, .num_tokens = 300, .scale = 1.0f}, 2);
  std::fill(in.query.begin(), in.query.end(), 1.0f);
  std::fill(in.key.begin(), in.key.end(), -3.0f);
  for (int64_t t : {7, 100, 170}) std::fill_n(in.key.begin() + t * 64, 64, static_cast<float>(t));
  const PagedCache cache(GetParam(), in, 32, 1, 300);
  for (const OperatorEntry* row : AttentionRows(GetParam(), 64)) {
    const std::vector<uint16_t> out = RunRows(row, in, cache, 0, 300);
    for (const auto& [position, winner] : {std::pair<int64_t, int64_t>{7, 7}, {99, 7}, {100, 100}, {169, 100}, {299, 170}}) {
      for (int64_t i = 0; i < 64; ++i) {
        const PagedCache::Stored stored = cache.At(cache.value, winner, 0, i);
        const double value = stored.scale * stored.code;
        EXPECT_NEAR(FromBits(out[position * 64 + i]), value, kBf16Unit * std::fabs(value)) << row->name << " " << position;
      }
    }
  }
}

TEST_P(AttentionTest, LongContextStaysWithinTheErrorModel) {
  const AttentionShape shape{.num_kv_heads = 1, .group = 1, .head_dim = 64, .num_tokens = 8192};
  const AttentionInput in(shape, 31);
  const PagedCache cache(GetParam(), in, 32, 6, shape.num_tokens);
  for (const OperatorEntry* row : AttentionRows(GetParam(), 64)) {
    ExpectMatchesReference(row, in, cache, RunRows(row, in, cache, 8191, 1), 8191, 1);
  }
}

// Blocks before the window may have been given back: their table entries and slots must not be looked at.
TEST_P(AttentionTest, NeverReadsBlocksBeforeTheWindow) {
  const AttentionShape shape{.num_kv_heads = 1, .group = 4, .head_dim = 64, .num_tokens = 300, .window = 70};
  const AttentionInput in(shape, 41);
  const PagedCache whole(GetParam(), in, 16, 6, shape.num_tokens);
  PagedCache trimmed = whole;
  for (int64_t b = 0; b < (250 - 69) / 16; ++b) {
    std::fill_n(trimmed.key.begin() + trimmed.block_table[b] * trimmed.block_stride, trimmed.head_stride, uint8_t{0xFF});
    trimmed.block_table[b] = 1 << 30;
  }
  for (const OperatorEntry* row : AttentionRows(GetParam(), 64)) {
    EXPECT_EQ(RunRows(row, in, trimmed, 250, 50), RunRows(row, in, whole, 250, 50)) << row->name;
  }
}

INSTANTIATE_TEST_SUITE_P(KvDtypes, AttentionTest, testing::ValuesIn(kKvDtypes), KvDtypeTestName);

}  // namespace
}  // namespace pith
