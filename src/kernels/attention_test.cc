#include "kernels/attention.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/operator_test_fixture.h"

namespace pith {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct AttentionShape {
  int64_t num_kv_heads = 1, group = 1, head_dim = 64;
  int64_t num_tokens = 1;  // cached tokens; the queries are those of all tokens
  int64_t window = 0;
  float scale = 0.125f;
  int64_t num_heads() const { return num_kv_heads * group; }
  int64_t query_stride() const { return num_heads() * head_dim + 3; }
};

std::string Describe(const AttentionShape& s) {
  return "kv heads " + std::to_string(s.num_kv_heads) + ", group " + std::to_string(s.group) + ", head_dim " + std::to_string(s.head_dim) +
         ", tokens " + std::to_string(s.num_tokens) + ", window " + std::to_string(s.window);
}

// Contiguous queries, keys and values of one sequence: query [tokens, query_stride], key and value [tokens, kv heads, head_dim] bf16.
struct AttentionInput {
  AttentionShape shape;
  std::vector<float> query;
  std::vector<uint16_t> key, value;

  AttentionInput(const AttentionShape& s, uint64_t seed) : shape(s), query(NormalValues(s.num_tokens * s.query_stride(), seed)) {
    for (float x : NormalValues(s.num_tokens * s.num_kv_heads * s.head_dim, seed + 1)) key.push_back(ToBits(x));
    for (float x : NormalValues(s.num_tokens * s.num_kv_heads * s.head_dim, seed + 2)) value.push_back(ToBits(x));
  }
};

// The first tokens of an input in a paged cache. Every slot that holds no token is NaN, blocks lie in a seeded order with gaps between
// heads.
struct PagedCache {
  int64_t block_size, head_stride, block_stride;
  int64_t num_tokens = 0;
  std::vector<int32_t> block_table;
  std::vector<uint16_t> key, value;

  PagedCache(const AttentionInput& in, int64_t block_size_tokens, uint64_t seed, int64_t count) : block_size(block_size_tokens) {
    const int64_t blocks = (in.shape.num_tokens + block_size - 1) / block_size;
    head_stride = block_size * in.shape.head_dim + 5;
    block_stride = in.shape.num_kv_heads * head_stride + 7;
    RandomStream random(seed);
    for (int64_t b = 0; b < blocks; ++b) block_table.push_back(static_cast<int32_t>(b));
    for (int64_t b = blocks - 1; b > 0; --b) std::swap(block_table[b], block_table[random.Below(static_cast<uint64_t>(b + 1))]);
    key.assign(static_cast<size_t>(blocks * block_stride), ToBits(kNaN));
    value = key;
    Append(in, count);
  }

  void Append(const AttentionInput& in, int64_t count) {
    const AttentionShape& s = in.shape;
    for (int64_t end = num_tokens + count; num_tokens < end; ++num_tokens) {
      for (int64_t h = 0; h < s.num_kv_heads; ++h) {
        const int64_t from = (num_tokens * s.num_kv_heads + h) * s.head_dim;
        const int64_t to = block_table[num_tokens / block_size] * block_stride + h * head_stride + (num_tokens % block_size) * s.head_dim;
        std::copy_n(in.key.begin() + from, s.head_dim, key.begin() + to);
        std::copy_n(in.value.begin() + from, s.head_dim, value.begin() + to);
      }
    }
  }
};

using AttentionFunction = void (*)(const AttentionParams&);

struct Call {
  int64_t first_position = 0, num_rows = 0;
  int64_t row_begin = 0, row_end = 0, kv_head_begin = 0, kv_head_end = 0;
};

// Bits of out for every (row, head, dim); rows and heads that the call does not compute keep 0xBEEF.
std::vector<uint16_t> RunCall(AttentionFunction run, const AttentionInput& in, const PagedCache& cache, const Call& call) {
  const AttentionShape& s = in.shape;
  const int64_t out_stride = s.num_heads() * s.head_dim + 9;
  GuardedBuffer<uint16_t> out(call.num_rows * out_stride, 0xBEEF);
  GuardedBuffer<float> scratch(AttentionScratchFloats(s.num_heads(), s.num_kv_heads, s.head_dim), kNaN);
  AttentionParams p{.query = in.query.data() + call.first_position * s.query_stride(),
                    .query_stride = s.query_stride(),
                    .out = out.data(),
                    .out_stride = out_stride,
                    .num_rows = call.num_rows,
                    .first_position = call.first_position,
                    .num_heads = s.num_heads(),
                    .num_kv_heads = s.num_kv_heads,
                    .head_dim = s.head_dim,
                    .key_cache = cache.key.data(),
                    .value_cache = cache.value.data(),
                    .block_table = cache.block_table.data(),
                    .block_size = cache.block_size,
                    .block_stride = cache.block_stride,
                    .head_stride = cache.head_stride,
                    .window = s.window,
                    .scale = s.scale,
                    .kv_head_begin = call.kv_head_begin,
                    .kv_head_end = call.kv_head_end,
                    .row_begin = call.row_begin,
                    .row_end = call.row_end,
                    .scratch = scratch.data()};
  run(p);
  EXPECT_TRUE(out.Intact());
  EXPECT_TRUE(scratch.Intact());
  std::vector<uint16_t> rows;
  for (int64_t r = 0; r < call.num_rows; ++r) {
    rows.insert(rows.end(), out.data() + r * out_stride, out.data() + r * out_stride + s.num_heads() * s.head_dim);
    for (int64_t i = s.num_heads() * s.head_dim; i < out_stride; ++i) EXPECT_EQ(out[r * out_stride + i], 0xBEEF);
  }
  return rows;
}

std::vector<uint16_t> RunRows(AttentionFunction run, const AttentionInput& in, const PagedCache& cache, int64_t first, int64_t count) {
  return RunCall(run, in, cache, {first, count, 0, count, 0, in.shape.num_kv_heads});
}

// All rows, `chunk` rows per call; no call's cache holds a token after the call's last row.
std::vector<uint16_t> RunChunked(AttentionFunction run, const AttentionInput& in, int64_t block_size, uint64_t seed, int64_t chunk) {
  std::vector<uint16_t> all;
  PagedCache cache(in, block_size, seed, 0);
  for (int64_t first = 0; first < in.shape.num_tokens; first += chunk) {
    const int64_t count = std::min(chunk, in.shape.num_tokens - first);
    cache.Append(in, count);
    const std::vector<uint16_t> rows = RunRows(run, in, cache, first, count);
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

// The definition in double, with what an f32 kernel may differ by. Error model (u = 2^-24): a score is a chain of head_dim products,
// |ds| <= (head_dim + 3) u scale sum|q k|, and its distance to the maximum rounds once; a weight's relative error is 2 max|ds| plus that
// rounding plus 4e-7 of the exponential; sums of 64 weighted values per chunk, then over chunks, add (64 + chunks + 4) u each for
// numerator and denominator; the result is rounded to bf16 once.
struct Expected {
  double value, tolerance;
};

std::vector<Expected> ReferenceRow(const AttentionInput& in, int64_t position, int64_t head) {
  const AttentionShape& s = in.shape;
  const int64_t begin = s.window > 0 ? std::max<int64_t>(0, position - s.window + 1) : 0;
  const int64_t n = position + 1 - begin;
  const auto element = [&](const std::vector<uint16_t>& x, int64_t t, int64_t i) {
    return static_cast<double>(FromBits(x[static_cast<size_t>((t * s.num_kv_heads + head / s.group) * s.head_dim + i)]));
  };
  std::vector<double> score(static_cast<size_t>(n));
  double max = -INFINITY, min = INFINITY, score_error = 0.0;
  for (int64_t t = 0; t < n; ++t) {
    double dot = 0.0, magnitude = 0.0;
    for (int64_t i = 0; i < s.head_dim; ++i) {
      const double product = in.query[position * s.query_stride() + head * s.head_dim + i] * element(in.key, begin + t, i);
      dot += product;
      magnitude += std::fabs(product);
    }
    score[t] = dot * s.scale;
    max = std::max(max, score[t]);
    min = std::min(min, score[t]);
    score_error = std::max(score_error, static_cast<double>(s.head_dim + 3) * kF32Unit * magnitude * s.scale);
  }
  double total = 0.0;
  for (double& x : score) total += (x = std::exp(x - max));
  const double weight_error = 2 * score_error + (max - min) * kF32Unit + 4e-7;
  const double sum_error = static_cast<double>(64 + n / kAttentionChunk + 4) * kF32Unit;
  std::vector<Expected> row;
  for (int64_t i = 0; i < s.head_dim; ++i) {
    double value = 0.0, magnitude = 0.0;
    for (int64_t t = 0; t < n; ++t) {
      value += score[t] / total * element(in.value, begin + t, i);
      magnitude += score[t] / total * std::fabs(element(in.value, begin + t, i));
    }
    const double f32_error = 2 * magnitude * (weight_error + sum_error);
    row.push_back({value, f32_error + kBf16Unit * (std::fabs(value) + f32_error)});
  }
  return row;
}

void ExpectMatchesReference(const AttentionInput& in, const std::vector<uint16_t>& out, int64_t row_step, const std::string& where) {
  const AttentionShape& s = in.shape;
  for (int64_t r = 0; r < s.num_tokens; r += row_step) {
    for (int64_t h = 0; h < s.num_heads(); ++h) {
      const std::vector<Expected> expected = ReferenceRow(in, r, h);
      for (int64_t i = 0; i < s.head_dim; ++i) {
        const double got = FromBits(out[static_cast<size_t>((r * s.num_heads() + h) * s.head_dim + i)]);
        ASSERT_NEAR(got, expected[i].value, expected[i].tolerance) << where << " row " << r << " head " << h << " dim " << i;
      }
    }
  }
}

std::vector<AttentionShape> Shapes() {
  std::vector<AttentionShape> shapes;
  for (int64_t group : {1, 2, 3, 4, 7, 8}) {
    for (int64_t head_dim : {8, 40, 64, 96, 128, 256}) {
      const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
      shapes.push_back({.num_kv_heads = group < 4 ? 2 : 1, .group = group, .head_dim = head_dim, .num_tokens = 150, .scale = scale});
    }
  }
  for (int64_t window : {1, 5, 64, 65, 100}) {
    shapes.push_back({.num_kv_heads = 2, .group = 3, .head_dim = 40, .num_tokens = 210, .window = window, .scale = 0.2f});
  }
  return shapes;
}

TEST(AttentionTest, MatchesTheDefinition) {
  for (const AttentionShape& shape : Shapes()) {
    const AttentionInput in(shape, 11);
    const PagedCache cache(in, 32, 5, shape.num_tokens);
    for (const auto& row : RunnableRows(&OperatorEntry::attention)) {
      ExpectMatchesReference(in, RunRows(row.run, in, cache, 0, shape.num_tokens), 7, row.name + ", " + Describe(shape));
      if (HasFatalFailure()) return;
    }
  }
}

// The same bits whatever rows share the call, wherever the blocks lie and however large they are. The calls' caches end with the call's
// last token, the whole prompt's does not: nothing after a row may reach it.
TEST(AttentionTest, BitsOfARowDoNotDependOnTheCall) {
  for (const AttentionShape& shape : Shapes()) {
    const AttentionInput in(shape, 23);
    const PagedCache cache(in, 32, 5, shape.num_tokens);
    for (const auto& row : RunnableRows(&OperatorEntry::attention)) {
      const std::vector<uint16_t> whole = RunRows(row.run, in, cache, 0, shape.num_tokens);
      for (const auto& [chunk, block_size] : {std::pair<int64_t, int64_t>{1, 32}, {7, 16}, {16, 64}, {64, 128}, {33, 8}}) {
        ASSERT_EQ(RunChunked(row.run, in, block_size, 100 + static_cast<uint64_t>(chunk), chunk), whole)
            << row.name << ", " << Describe(shape) << ", chunks of " << chunk << ", blocks of " << block_size;
      }
    }
  }
}

TEST(AttentionTest, ComputesOnlyTheAskedHeadsAndRows) {
  const AttentionShape shape{.num_kv_heads = 3, .group = 2, .head_dim = 64, .num_tokens = 90};
  const AttentionInput in(shape, 3);
  const PagedCache cache(in, 32, 4, shape.num_tokens);
  for (const auto& row : RunnableRows(&OperatorEntry::attention)) {
    const std::vector<uint16_t> whole = RunRows(row.run, in, cache, 0, shape.num_tokens);
    const Call call{.first_position = 10, .num_rows = 80, .row_begin = 5, .row_end = 47, .kv_head_begin = 1, .kv_head_end = 2};
    const std::vector<uint16_t> part = RunCall(row.run, in, cache, call);
    const int64_t width = shape.num_heads() * shape.head_dim;
    for (int64_t r = 0; r < call.num_rows; ++r) {
      for (int64_t i = 0; i < width; ++i) {
        const bool asked = r >= 5 && r < 47 && i / shape.head_dim / shape.group == 1;
        const uint16_t expected = asked ? whole[static_cast<size_t>((10 + r) * width + i)] : 0xBEEF;
        ASSERT_EQ(part[static_cast<size_t>(r * width + i)], expected) << row.name << " row " << r << " element " << i;
      }
    }
  }
}

TEST(AttentionTest, OneRowWithNaNDoesNotReachTheOthers) {
  const AttentionShape shape{.num_kv_heads = 1, .group = 2, .head_dim = 64, .num_tokens = 100};
  const AttentionInput clean(shape, 8);
  AttentionInput poisoned = clean;  // token 40 has a NaN query in head 1, and NaN key and value, as one bad activation row would
  poisoned.query[40 * shape.query_stride() + shape.head_dim + 5] = kNaN;
  poisoned.key[40 * shape.head_dim + 1] = poisoned.value[40 * shape.head_dim + 2] = ToBits(kNaN);
  for (const auto& row : RunnableRows(&OperatorEntry::attention)) {
    const int64_t width = shape.num_heads() * shape.head_dim;
    const std::vector<uint16_t> expected = RunRows(row.run, clean, PagedCache(clean, 32, 1, 100), 0, 100);
    const std::vector<uint16_t> got = RunRows(row.run, poisoned, PagedCache(poisoned, 32, 1, 100), 0, 100);
    for (int64_t i = 0; i < 40 * width; ++i) ASSERT_EQ(got[i], expected[i]) << row.name << " element " << i;
    for (int64_t i = 40 * width; i < 100 * width; ++i) ASSERT_TRUE(std::isnan(FromBits(got[i]))) << row.name << " element " << i;

    AttentionInput bad_query = clean;  // any NaN, also one whose payload is all ones
    bad_query.query[40 * shape.query_stride() + 3] = std::bit_cast<float>(0x7FFFFFFF);
    bad_query.query[41 * shape.query_stride() + shape.head_dim] = -kNaN;
    const std::vector<uint16_t> other = RunRows(row.run, bad_query, PagedCache(clean, 32, 1, 100), 0, 100);
    for (int64_t i = 0; i < 100 * width; ++i) {
      if (i / shape.head_dim == 40 * 2 || i / shape.head_dim == 41 * 2 + 1) {
        ASSERT_TRUE(std::isnan(FromBits(other[i]))) << row.name << " element " << i;
      } else {
        ASSERT_EQ(other[i], expected[i]) << row.name << " element " << i;
      }
    }
  }
}

// Query, caches and table end where the readable memory ends, the last token in the last slot of the last block.
TEST(AttentionTest, ReadsNothingBeyondItsInputs) {
  for (int64_t head_dim : {8, 24, 40, 64, 72, 96, 128}) {
    const AttentionShape shape{.num_kv_heads = 2, .group = 3, .head_dim = head_dim, .num_tokens = 96};
    AttentionInput in(shape, 17);
    in.query.resize(in.query.size() - 3);  // the gap after the last row
    PagedCache cache(in, 32, 5, 96);
    cache.block_table = {0, 1, 2};
    const size_t used = static_cast<size_t>(2 * cache.block_stride + cache.head_stride + 32 * head_dim);
    cache.key.assign(used, ToBits(0.5f));
    cache.value.assign(used, ToBits(-0.25f));
    const PageEndBuffer<float> query(in.query);
    const PageEndBuffer<uint16_t> key(cache.key), value(cache.value);
    const PageEndBuffer<int32_t> table(cache.block_table);
    for (const auto& row : RunnableRows(&OperatorEntry::attention)) {
      std::vector<uint16_t> out(static_cast<size_t>(96 * 6 * head_dim));
      std::vector<float> scratch(static_cast<size_t>(AttentionScratchFloats(6, 2, head_dim)));
      row.run({.query = query.data(),
               .query_stride = shape.query_stride(),
               .out = out.data(),
               .out_stride = 6 * head_dim,
               .num_rows = 96,
               .num_heads = 6,
               .num_kv_heads = 2,
               .head_dim = head_dim,
               .key_cache = key.data(),
               .value_cache = value.data(),
               .block_table = table.data(),
               .block_size = 32,
               .block_stride = cache.block_stride,
               .head_stride = cache.head_stride,
               .kv_head_begin = 0,
               .kv_head_end = 2,
               .row_begin = 0,
               .row_end = 96,
               .scratch = scratch.data()});
      EXPECT_THAT(out, testing::Each(ToBits(-0.25f))) << row.name << " head_dim " << head_dim;
    }
  }
}

TEST(AttentionTest, HandComputed) {
  // Two tokens, scores 0 and ln 3 for the second row: weights 1/4 and 3/4. The first row sees itself only.
  AttentionInput in({.head_dim = 8, .num_tokens = 2, .scale = 0.5f}, 1);
  std::fill(in.query.begin(), in.query.end(), 0.0f);
  in.query[in.shape.query_stride()] = 2.0f * std::log(3.0f);
  in.key.assign(16, 0);
  in.key[8] = ToBits(1.0f);
  for (int64_t i = 0; i < 16; ++i) in.value[i] = ToBits(i < 8 ? 4.0f * static_cast<float>(i) : 8.0f);
  for (const auto& row : RunnableRows(&OperatorEntry::attention)) {
    const std::vector<uint16_t> out = RunRows(row.run, in, PagedCache(in, 32, 1, 2), 0, 2);
    for (int64_t i = 0; i < 8; ++i) {
      EXPECT_EQ(FromBits(out[i]), 4.0f * static_cast<float>(i)) << row.name;
      EXPECT_EQ(FromBits(out[8 + i]), static_cast<float>(i) + 6.0f) << row.name;
    }
  }
}

TEST(AttentionTest, FarScoresLeaveOneToken) {
  // One key in each chunk stands out by far more than exp can express; later and higher ones must displace earlier ones.
  AttentionInput in({.head_dim = 64, .num_tokens = 300, .scale = 1.0f}, 2);
  std::fill(in.query.begin(), in.query.end(), 1.0f);
  std::fill(in.key.begin(), in.key.end(), ToBits(-3.0f));
  for (int64_t t : {7, 100, 170}) std::fill_n(in.key.begin() + t * 64, 64, ToBits(static_cast<float>(t)));
  for (const auto& row : RunnableRows(&OperatorEntry::attention)) {
    const std::vector<uint16_t> out = RunRows(row.run, in, PagedCache(in, 32, 1, 300), 0, 300);
    for (const auto& [position, winner] : {std::pair<int64_t, int64_t>{7, 7}, {99, 7}, {100, 100}, {169, 100}, {299, 170}}) {
      for (int64_t i = 0; i < 64; ++i) EXPECT_EQ(out[position * 64 + i], in.value[winner * 64 + i]) << row.name << " " << position;
    }
  }
}

TEST(AttentionTest, LongContextStaysWithinTheErrorModel) {
  const AttentionShape shape{.num_kv_heads = 1, .group = 1, .head_dim = 64, .num_tokens = 8192};
  const AttentionInput in(shape, 31);
  const PagedCache cache(in, 32, 6, shape.num_tokens);
  const std::vector<Expected> expected = ReferenceRow(in, 8191, 0);
  for (const auto& row : RunnableRows(&OperatorEntry::attention)) {
    const std::vector<uint16_t> out = RunRows(row.run, in, cache, 8191, 1);
    for (int64_t i = 0; i < 64; ++i) EXPECT_NEAR(FromBits(out[i]), expected[i].value, expected[i].tolerance) << row.name;
  }
}

// Blocks before the window may have been given back: their table entries and slots must not be looked at.
TEST(AttentionTest, NeverReadsBlocksBeforeTheWindow) {
  const AttentionShape shape{.num_kv_heads = 1, .group = 4, .head_dim = 64, .num_tokens = 300, .window = 70};
  const AttentionInput in(shape, 41);
  const PagedCache whole(in, 16, 6, shape.num_tokens);
  PagedCache trimmed = whole;
  for (int64_t b = 0; b < (250 - 69) / 16; ++b) {
    std::fill_n(trimmed.key.begin() + trimmed.block_table[b] * trimmed.block_stride, 16 * 64, ToBits(kNaN));
    trimmed.block_table[b] = 1 << 30;
  }
  for (const auto& row : RunnableRows(&OperatorEntry::attention)) {
    EXPECT_EQ(RunRows(row.run, in, trimmed, 250, 50), RunRows(row.run, in, whole, 250, 50)) << row.name;
  }
}

}  // namespace
}  // namespace pith
