// For the attention tests: sequences in paged caches of every format, calls of the table's rows, and the definition in double.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "kernels/operator_test_fixture.h"

namespace pith {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct AttentionShape {
  int64_t num_kv_heads = 1, group = 1, head_dim = 64;
  int64_t num_tokens = 1;  // cached tokens; the queries are those of all tokens
  int64_t window = 0;
  float scale = 0.125f;
  int64_t num_heads() const { return num_kv_heads * group; }
  int64_t query_stride() const { return num_heads() * head_dim + 3; }
};

inline std::string Describe(const AttentionShape& s) {
  return "kv heads " + std::to_string(s.num_kv_heads) + ", group " + std::to_string(s.group) + ", head_dim " + std::to_string(s.head_dim) +
         ", tokens " + std::to_string(s.num_tokens) + ", window " + std::to_string(s.window);
}

// Contiguous queries, keys and values of one sequence: query [tokens, query_stride], key and value [tokens, kv heads, head_dim].
struct AttentionInput {
  AttentionShape shape;
  std::vector<float> query, key, value;

  AttentionInput(const AttentionShape& s, uint64_t seed)
      : shape(s),
        query(NormalValues(s.num_tokens * s.query_stride(), seed)),
        key(NormalValues(s.num_tokens * s.num_kv_heads * s.head_dim, seed + 1)),
        value(NormalValues(s.num_tokens * s.num_kv_heads * s.head_dim, seed + 2)) {}
};

// The scalar row that stores in a format.
inline const OperatorEntry* ScalarAppend(KvDtype dtype) {
  for (const OperatorEntry* row : AllOperators()) {
    if (row->kv_append != nullptr && row->kv_dtype == dtype && row->isa == KernelIsa::kScalar) return row;
  }
  return nullptr;
}

// The first tokens of an input in a paged cache. Every slot and scale that belongs to no token is NaN (or what comes closest), blocks lie
// in a seeded order with gaps between heads.
struct PagedCache {
  KvDtype dtype;
  AttentionShape shape;
  int64_t block_size, head_stride, block_stride;
  int64_t num_tokens = 0;
  std::vector<int32_t> block_table;
  std::vector<uint8_t> key, value;

  PagedCache(KvDtype cache_dtype, const AttentionInput& in, int64_t block_size_tokens, uint64_t seed, int64_t count)
      : dtype(cache_dtype), shape(in.shape), block_size(block_size_tokens) {
    const int64_t blocks = (shape.num_tokens + block_size - 1) / block_size;
    head_stride = block_size * (shape.head_dim * KvElementBytes(dtype) + KvScaleBytes(dtype)) + 12;
    block_stride = shape.num_kv_heads * head_stride + 20;
    RandomStream random(seed);
    for (int64_t b = 0; b < blocks; ++b) block_table.push_back(static_cast<int32_t>(b));
    for (int64_t b = blocks - 1; b > 0; --b) std::swap(block_table[b], block_table[random.Below(static_cast<uint64_t>(b + 1))]);
    key.assign(static_cast<size_t>(blocks * block_stride), 0xFF);
    value = key;
    Append(in, count);
  }

  void Append(const AttentionInput& in, int64_t count) {
    const int64_t width = shape.num_kv_heads * shape.head_dim;
    ScalarAppend(dtype)->kv_append({.key = in.key.data() + num_tokens * width,
                                    .value = in.value.data() + num_tokens * width,
                                    .key_stride = width,
                                    .value_stride = width,
                                    .num_rows = count,
                                    .first_position = num_tokens,
                                    .num_kv_heads = shape.num_kv_heads,
                                    .head_dim = shape.head_dim,
                                    .key_cache = key.data(),
                                    .value_cache = value.data(),
                                    .block_table = block_table.data(),
                                    .block_size = block_size,
                                    .block_stride = block_stride,
                                    .head_stride = head_stride});
    num_tokens += count;
  }

  // Element i of a token's key or value as a number: the scale (1 for bf16) and what it multiplies.
  struct Stored {
    double scale, code;
  };
  Stored At(const std::vector<uint8_t>& cache, int64_t t, int64_t kv_head, int64_t i) const {
    const int64_t token_bytes = shape.head_dim * KvElementBytes(dtype), slot = t % block_size;
    const uint8_t* head = cache.data() + block_table[t / block_size] * block_stride + kv_head * head_stride;
    if (dtype == KvDtype::kBf16) {
      uint16_t bits;
      std::memcpy(&bits, head + slot * token_bytes + 2 * i, 2);
      return {1.0, FromBits(bits)};
    }
    float scale;
    std::memcpy(&scale, head + block_size * token_bytes + 4 * slot, 4);
    const uint8_t code = head[slot * token_bytes + i];
    return {scale, dtype == KvDtype::kInt8 ? static_cast<int8_t>(code) : ToFloat(float8_e4m3fn{code})};
  }
};

struct Call {
  int64_t first_position = 0, num_rows = 0;
  int64_t row_begin = 0, row_end = 0, kv_head_begin = 0, kv_head_end = 0;
};

inline AttentionParams ParamsOf(const AttentionInput& in, const PagedCache& cache, const Call& call) {
  const AttentionShape& s = in.shape;
  return {.query = in.query.data() + call.first_position * s.query_stride(),
          .query_stride = s.query_stride(),
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
          .row_end = call.row_end};
}

// Bits of out for every (row, head, dim); rows and heads that the call does not compute keep 0xBEEF.
inline std::vector<uint16_t> RunCall(const OperatorEntry* row, const AttentionInput& in, const PagedCache& cache, const Call& call) {
  const AttentionShape& s = in.shape;
  const int64_t out_stride = s.num_heads() * s.head_dim + 9;
  GuardedBuffer<uint16_t> out(call.num_rows * out_stride, 0xBEEF);
  GuardedBuffer<float> scratch(AttentionScratchFloats(s.num_heads(), s.num_kv_heads, s.head_dim), kNaN);
  AttentionParams p = ParamsOf(in, cache, call);
  p.out = out.data();
  p.out_stride = out_stride;
  p.scratch = scratch.data();
  row->attention(p);
  EXPECT_TRUE(out.Intact());
  EXPECT_TRUE(scratch.Intact());
  std::vector<uint16_t> rows;
  for (int64_t r = 0; r < call.num_rows; ++r) {
    rows.insert(rows.end(), out.data() + r * out_stride, out.data() + r * out_stride + s.num_heads() * s.head_dim);
    for (int64_t i = s.num_heads() * s.head_dim; i < out_stride; ++i) EXPECT_EQ(out[r * out_stride + i], 0xBEEF);
  }
  return rows;
}

inline std::vector<uint16_t> RunRows(const OperatorEntry* row, const AttentionInput& in, const PagedCache& cache, int64_t first,
                                     int64_t count) {
  return RunCall(row, in, cache, {first, count, 0, count, 0, in.shape.num_kv_heads});
}

// The attention rows of a format that this CPU can run with this head_dim.
inline std::vector<const OperatorEntry*> AttentionRows(KvDtype dtype, int64_t head_dim) {
  std::vector<const OperatorEntry*> rows;
  for (const OperatorEntry* row : AllOperators()) {
    if (row->attention == nullptr || row->kv_dtype != dtype || !RunsHere(row->isa)) continue;
    if (head_dim % row->head_dim_multiple == 0) rows.push_back(row);
  }
  return rows;
}

// The definition in double over what the cache holds, with what a kernel may differ by. Error model (u = 2^-24): a score is a chain of
// head_dim products, |ds| <= (head_dim + 5) u scale sum|q k|, and its distance to the maximum rounds once; a weight's relative error is
// 2 max|ds| plus that rounding plus 4e-7 of the exponential; sums of 64 weighted values per chunk, then over chunks, then over partitions,
// add (64 + chunks + 4 partitions + 6) u each for numerator and denominator; the result is rounded to bf16 once.
// A kernel with integer products also rounds queries to max|q| / 32512 and weights times value scales to 1 / 65535 of a chunk's largest;
// one with products of two bf16 parts rounds every query and weight by 2^-18 of itself, and adds two products for each.
struct Expected {
  double value, tolerance;
};

constexpr double kPartsUnit = 0x1p-18;  // a number as the sum of two bf16

enum class AttentionProducts { kF32, kInteger, kTwoBf16 };
inline AttentionProducts ProductsOf(const OperatorEntry* row) {
  if (row->kv_dtype == KvDtype::kInt8) {
    const bool vnni = row->isa == KernelIsa::kAvx2Vnni || row->isa >= KernelIsa::kAvx512Vnni;
    return vnni ? AttentionProducts::kInteger : AttentionProducts::kF32;
  }
  return row->isa == KernelIsa::kAmx ? AttentionProducts::kTwoBf16 : AttentionProducts::kF32;
}

// Scores of one row and head with its tokens from `begin` on, and the largest error of one.
struct ReferenceScores {
  std::vector<double> score;
  double max = -INFINITY, min = INFINITY, error = 0.0;
};

inline ReferenceScores ScoreRow(const AttentionInput& in, const PagedCache& cache, int64_t position, int64_t head,
                                AttentionProducts products) {
  const AttentionShape& s = in.shape;
  ReferenceScores out;
  double largest_query = 0.0;
  const float* query = in.query.data() + position * s.query_stride() + head * s.head_dim;
  for (int64_t i = 0; i < s.head_dim; ++i) largest_query = std::max(largest_query, static_cast<double>(std::fabs(query[i])));
  for (int64_t t = AttentionFirstToken(position, s.window); t <= position; ++t) {
    double dot = 0.0, magnitude = 0.0, keys = 0.0;
    for (int64_t i = 0; i < s.head_dim; ++i) {
      const PagedCache::Stored stored = cache.At(cache.key, t, head / s.group, i);
      const double key = stored.scale * stored.code;
      dot += query[i] * key;
      magnitude += std::fabs(query[i] * key);
      keys += std::fabs(key);
    }
    out.score.push_back(dot * s.scale);
    out.max = std::max(out.max, out.score.back());
    out.min = std::min(out.min, out.score.back());
    const bool twice = products == AttentionProducts::kTwoBf16;
    double error = static_cast<double>(s.head_dim * (twice ? 2 : 1) + 5) * kF32Unit * magnitude;
    if (products == AttentionProducts::kInteger) error += largest_query / (2 * 32512.0) * keys;
    if (twice) error += kPartsUnit * magnitude;
    out.error = std::max(out.error, error * s.scale);
  }
  return out;
}

inline std::vector<Expected> ReferenceRow(const AttentionInput& in, const PagedCache& cache, int64_t position, int64_t head,
                                          AttentionProducts products) {
  const AttentionShape& s = in.shape;
  const bool integer = products == AttentionProducts::kInteger, twice = products == AttentionProducts::kTwoBf16;
  ReferenceScores scores = ScoreRow(in, cache, position, head, products);
  std::vector<double>& weight = scores.score;
  const auto n = static_cast<int64_t>(weight.size());
  const int64_t first = position + 1 - n;
  double total = 0.0;
  for (double& x : weight) total += (x = std::exp(x - scores.max));
  const double weight_error = 2 * scores.error + (scores.max - scores.min) * kF32Unit + 4e-7 + (twice ? kPartsUnit : 0.0);
  const double sums = static_cast<double>((twice ? 128 : 64) + n / kAttentionChunk + 4 * (n / kAttentionPartition + 1) + 6);
  std::vector<double> chunk_largest(static_cast<size_t>(position / kAttentionChunk + 1), 0.0);  // weight times value scale
  for (int64_t t = first; integer && t <= position; ++t) {
    double& largest = chunk_largest[t / kAttentionChunk];
    largest = std::max(largest, weight[t - first] * cache.At(cache.value, t, head / s.group, 0).scale);
  }
  std::vector<Expected> row;
  for (int64_t i = 0; i < s.head_dim; ++i) {
    double value = 0.0, magnitude = 0.0, rounding = 0.0;
    for (int64_t t = first; t <= position; ++t) {
      const PagedCache::Stored stored = cache.At(cache.value, t, head / s.group, i);
      const double weighted = weight[t - first] / total * stored.scale * stored.code;
      value += weighted;
      magnitude += std::fabs(weighted);
      if (integer) rounding += chunk_largest[t / kAttentionChunk] / total * std::fabs(stored.code) / (2 * 65535.0);
    }
    const double error = 2 * magnitude * (weight_error + sums * kF32Unit) + rounding;
    row.push_back({value, error + kBf16Unit * (std::fabs(value) + error)});
  }
  return row;
}

// `out` holds the rows from first_position on; every row_step-th is compared.
inline void ExpectMatchesReference(const OperatorEntry* row, const AttentionInput& in, const PagedCache& cache,
                                   const std::vector<uint16_t>& out, int64_t first_position, int64_t row_step) {
  const AttentionShape& s = in.shape;
  const auto num_rows = static_cast<int64_t>(out.size()) / (s.num_heads() * s.head_dim);
  for (int64_t r = 0; r < num_rows; r += row_step) {
    for (int64_t h = 0; h < s.num_heads(); ++h) {
      const std::vector<Expected> expected = ReferenceRow(in, cache, first_position + r, h, ProductsOf(row));
      for (int64_t i = 0; i < s.head_dim; ++i) {
        const double got = FromBits(out[static_cast<size_t>((r * s.num_heads() + h) * s.head_dim + i)]);
        ASSERT_NEAR(got, expected[i].value, expected[i].tolerance)
            << row->name << ", " << Describe(s) << ", position " << first_position + r << " head " << h << " dim " << i;
      }
    }
  }
}

}  // namespace pith
