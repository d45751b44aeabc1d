#include <cmath>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/attention.h"
#include "kernels/operator_test_fixture.h"

namespace pith {
namespace {

struct AppendShape {
  int64_t num_kv_heads, head_dim, block_size, first_position, num_rows;
};

constexpr AppendShape kAppendShapes[] = {{1, 8, 4, 0, 1},    {2, 40, 4, 3, 6},    {3, 64, 32, 31, 2}, {1, 256, 16, 5, 40},
                                         {4, 96, 32, 0, 70}, {2, 128, 64, 60, 9}, {5, 72, 8, 7, 17},  {2, 13, 4, 2, 9}};

std::vector<const OperatorEntry*> AppendRowsOf(KvDtype dtype) {
  std::vector<const OperatorEntry*> rows;
  for (const OperatorEntry* row : AllOperators()) {
    if (row->kv_append != nullptr && row->kv_dtype == dtype && RunsHere(row->isa)) rows.push_back(row);
  }
  return rows;
}

// What a format makes of a vector: its elements' bytes, then its scale's.
struct StoredVector {
  std::vector<uint8_t> elements, scale;
};

// static_scale: of fp8; 0: the vector's own.
StoredVector Store(KvDtype dtype, const float* x, int64_t head_dim, float static_scale = 0.0f) {
  StoredVector out;
  if (dtype == KvDtype::kBf16) {
    for (int64_t i = 0; i < head_dim; ++i) {
      out.elements.push_back(static_cast<uint8_t>(ToBits(x[i])));
      out.elements.push_back(static_cast<uint8_t>(ToBits(x[i]) >> 8));
    }
    return out;
  }
  float largest = 0.0f;
  bool finite = true;
  for (int64_t i = 0; i < head_dim; ++i) {
    finite = finite && std::isfinite(x[i]);
    largest = std::max(largest, std::fabs(x[i]));
  }
  const bool is_static = dtype == KvDtype::kFp8 && static_scale > 0;
  const bool codes = finite && (is_static || largest >= kKvSmallest);
  const float scale = !finite     ? std::numeric_limits<float>::quiet_NaN()
                      : is_static ? static_scale
                      : codes     ? largest / (dtype == KvDtype::kInt8 ? 127.0f : 448.0f)
                                  : 0.0f;
  for (int64_t i = 0; i < head_dim; ++i) {
    const float quotient = codes ? x[i] / scale : 0.0f;
    out.elements.push_back(dtype == KvDtype::kFp8 ? ToFloat8E4M3(quotient).bits
                                                  : static_cast<uint8_t>(static_cast<int8_t>(std::nearbyint(quotient))));
  }
  out.scale.resize(4);
  std::memcpy(out.scale.data(), &scale, 4);
  return out;
}

class KvAppendTest : public testing::TestWithParam<KvDtype> {};

// Scales of head h: small enough that some elements saturate. Formats without static scales ignore them.
float KeyScale(int64_t head) { return 0.004f + 0.001f * static_cast<float>(head); }
float ValueScale(int64_t head) { return 0.01f + 0.5f * static_cast<float>(head); }

void ExpectRowsInTheirBlocks(KvDtype dtype, bool with_static_scales) {
  std::vector<float> key_scales, value_scales;
  for (int64_t h = 0; h < 8 && with_static_scales; ++h) {
    key_scales.push_back(KeyScale(h));
    value_scales.push_back(ValueScale(h));
  }
  for (const AppendShape& s : kAppendShapes) {
    const int64_t blocks = (s.first_position + s.num_rows + s.block_size - 1) / s.block_size;
    const int64_t token_bytes = s.head_dim * KvElementBytes(dtype);
    const int64_t head_stride = s.block_size * (token_bytes + KvScaleBytes(dtype)) + 12, block_stride = s.num_kv_heads * head_stride + 8;
    std::vector<int32_t> table;
    for (int64_t b = 0; b < blocks; ++b) table.push_back(static_cast<int32_t>(blocks - 1 - b));
    const int64_t key_stride = s.num_kv_heads * s.head_dim + 1, value_stride = key_stride + 4;
    const std::vector<float> key = NormalValues(s.num_rows * key_stride - 1, 1), value = NormalValues(s.num_rows * value_stride - 5, 2);
    const PageEndBuffer<float> readable_key(key), readable_value(value);
    std::vector<uint8_t> expected_key(static_cast<size_t>(blocks * block_stride), 0xBE), expected_value = expected_key;
    for (int64_t r = 0; r < s.num_rows; ++r) {
      for (int64_t h = 0; h < s.num_kv_heads; ++h) {
        const int64_t t = s.first_position + r, slot = t % s.block_size;
        const int64_t head = table[t / s.block_size] * block_stride + h * head_stride;
        const auto place = [&](std::vector<uint8_t>& cache, const float* x, float static_scale) {
          const StoredVector stored = Store(dtype, x, s.head_dim, static_scale);
          std::copy(stored.elements.begin(), stored.elements.end(), cache.begin() + head + slot * token_bytes);
          std::copy(stored.scale.begin(), stored.scale.end(), cache.begin() + head + s.block_size * token_bytes + 4 * slot);
        };
        place(expected_key, key.data() + r * key_stride + h * s.head_dim, with_static_scales ? KeyScale(h) : 0);
        place(expected_value, value.data() + r * value_stride + h * s.head_dim, with_static_scales ? ValueScale(h) : 0);
      }
    }
    for (const OperatorEntry* row : AppendRowsOf(dtype)) {
      GuardedBuffer<uint8_t> key_cache(blocks * block_stride, 0xBE), value_cache(blocks * block_stride, 0xBE);
      row->kv_append({.key = readable_key.data(),
                      .value = readable_value.data(),
                      .key_stride = key_stride,
                      .value_stride = value_stride,
                      .num_rows = s.num_rows,
                      .first_position = s.first_position,
                      .num_kv_heads = s.num_kv_heads,
                      .head_dim = s.head_dim,
                      .key_cache = key_cache.data(),
                      .value_cache = value_cache.data(),
                      .block_table = table.data(),
                      .block_size = s.block_size,
                      .block_stride = block_stride,
                      .head_stride = head_stride,
                      .key_scales = with_static_scales ? key_scales.data() : nullptr,
                      .value_scales = with_static_scales ? value_scales.data() : nullptr});
      EXPECT_TRUE(key_cache.Intact() && value_cache.Intact()) << row->name;
      EXPECT_EQ(key_cache.values(), expected_key) << row->name << " head_dim " << s.head_dim;
      EXPECT_EQ(value_cache.values(), expected_value) << row->name << " head_dim " << s.head_dim;
    }
  }
}

TEST_P(KvAppendTest, StoresRowsInTheirBlocksAndNothingElse) { ExpectRowsInTheirBlocks(GetParam(), false); }
TEST_P(KvAppendTest, StaticScalesAreOneForEveryVectorOfAHead) { ExpectRowsInTheirBlocks(GetParam(), true); }

// One vector of 24 elements, stored by every row of the format.
void ExpectStored(KvDtype dtype, const std::vector<float>& x, const char* what, float static_scale = 0.0f) {
  const StoredVector expected = Store(dtype, x.data(), 24, static_scale);
  std::vector<uint8_t> bytes = expected.elements;
  bytes.insert(bytes.end(), expected.scale.begin(), expected.scale.end());
  const int32_t table = 0;
  for (const OperatorEntry* row : AppendRowsOf(dtype)) {
    std::vector<uint8_t> key(bytes.size(), 0xBE), value = key;
    const auto stride = static_cast<int64_t>(key.size());
    row->kv_append({.key = x.data(),
                    .value = x.data(),
                    .num_rows = 1,
                    .num_kv_heads = 1,
                    .head_dim = 24,
                    .key_cache = key.data(),
                    .value_cache = value.data(),
                    .block_table = &table,
                    .block_size = 1,
                    .block_stride = stride,
                    .head_stride = stride,
                    .key_scales = static_scale > 0 ? &static_scale : nullptr,
                    .value_scales = static_scale > 0 ? &static_scale : nullptr});
    EXPECT_EQ(key, bytes) << row->name << ": " << what;
    EXPECT_EQ(value, bytes) << row->name << ": " << what;
  }
}

TEST_P(KvAppendTest, EdgesOfTheFormat) {
  std::vector<float> x(24, 0.0f);
  ExpectStored(GetParam(), x, "zeros");
  x[5] = -0x1p-101f;
  ExpectStored(GetParam(), x, "smaller than the smallest");
  x[6] = 0x1p-100f;
  ExpectStored(GetParam(), x, "the smallest");
  for (int i = 0; i < 24; ++i) x[static_cast<size_t>(i)] = static_cast<float>(i - 12) * 0.5f;  // ties
  x[0] = 127.0f;
  ExpectStored(GetParam(), x, "ties of int8");
  x[0] = 448.0f;
  for (int i = 1; i < 24; ++i) x[static_cast<size_t>(i)] = std::ldexp(static_cast<float>(2 * i + 1), -10);  // ties of subnormals
  ExpectStored(GetParam(), x, "subnormals of fp8");
  for (int i = 1; i < 24; ++i) x[static_cast<size_t>(i)] = static_cast<float>(33 + 2 * i) / (i % 2 == 0 ? 16.0f : -16.0f);
  ExpectStored(GetParam(), x, "ties of fp8");
  x[0] = std::numeric_limits<float>::max();
  ExpectStored(GetParam(), x, "the largest");
  if (GetParam() == KvDtype::kBf16) return;  // NaN payloads are bf16's own matter
  x[7] = std::numeric_limits<float>::infinity();
  ExpectStored(GetParam(), x, "infinity");
  x[7] = -std::numeric_limits<float>::quiet_NaN();
  ExpectStored(GetParam(), x, "NaN");
}

// Nothing of a vector decides its scale: zeros and tiny ones get it too, large ones end at 448 scales, and NaN still spoils the vector.
TEST(KvAppendStaticTest, EdgesOfStaticScales) {
  std::vector<float> x(24, 0.0f);
  for (const float scale : {0.5f, kKvSmallest, 0x1p+100f}) {
    x.assign(24, 0.0f);
    ExpectStored(KvDtype::kFp8, x, "zeros", scale);
    for (int i = 0; i < 24; ++i) x[static_cast<size_t>(i)] = std::ldexp(i % 2 == 0 ? 1.5f : -1.75f, 2 * i - 30);
    ExpectStored(KvDtype::kFp8, x, "from tiny to saturated", scale);
    x[3] = std::numeric_limits<float>::max();
    x[4] = -std::numeric_limits<float>::max();
    x[5] = std::numeric_limits<float>::denorm_min();
    ExpectStored(KvDtype::kFp8, x, "the largest and the smallest", scale);
    x[7] = std::numeric_limits<float>::quiet_NaN();
    ExpectStored(KvDtype::kFp8, x, "NaN", scale);
  }
  x.assign(24, 0.0f);
  x[0] = 600.0f;
  x[1] = -600.0f;
  const StoredVector stored = Store(KvDtype::kFp8, x.data(), 24, 1.0f);
  EXPECT_EQ(stored.elements[0], 0x7E);
  EXPECT_EQ(stored.elements[1], 0xFE);
}

// Half a step is the largest error; a step is the scale for int8, and for fp8 an eighth of the power of two below.
TEST(KvAppendErrorTest, HalfAStep) {
  const std::vector<float> x = NormalValues(64 * 24, 3);
  for (int64_t v = 0; v < 64; ++v) {
    const float* in = x.data() + v * 24;
    const StoredVector int8 = Store(KvDtype::kInt8, in, 24), fp8 = Store(KvDtype::kFp8, in, 24);
    float int8_scale, fp8_scale;
    std::memcpy(&int8_scale, int8.scale.data(), 4);
    std::memcpy(&fp8_scale, fp8.scale.data(), 4);
    for (int64_t i = 0; i < 24; ++i) {
      EXPECT_NEAR(int8_scale * static_cast<int8_t>(int8.elements[i]), in[i], 0.5001f * int8_scale);
      const float step = std::max(std::fabs(in[i]) / 8, fp8_scale * 0x1p-9f);
      EXPECT_NEAR(fp8_scale * ToFloat(float8_e4m3fn{fp8.elements[i]}), in[i], 0.5001f * step);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(KvDtypes, KvAppendTest, testing::ValuesIn(kKvDtypes), KvDtypeTestName);

}  // namespace
}  // namespace pith
