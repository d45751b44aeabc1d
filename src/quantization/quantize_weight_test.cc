#include "quantization/quantize_weight.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/float_types.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "quantization/reference.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

struct Matrix {
  Matrix(int64_t rows, int64_t cols, uint64_t seed) : rows(rows), cols(cols), values(static_cast<size_t>(rows * cols)) {
    RandomStream random(seed);
    for (float& value : values) value = random.Normal() * 0.02f;
  }
  MatrixView<const float> view() const { return {values.data(), rows, cols}; }

  int64_t rows, cols;
  std::vector<float> values;
};

QuantizationArgs Args(int num_bits, bool symmetric, QuantizationStrategy strategy, int group_size = 0) {
  return {.num_bits = num_bits, .symmetric = symmetric, .strategy = strategy, .group_size = group_size};
}

absl::StatusOr<QuantizedTensor> Quantize(MatrixView<const float> weight, const QuantizationArgs& args,
                                         const ClipSearch& search = kNoClipSearch, DType scale_dtype = DType::kBF16, int threads = 1) {
  ThreadPool pool(threads);
  return QuantizeWeight(weight, args, scale_dtype, search, pool);
}

TEST(QuantizeWeight, HandComputedPerStrategy) {
  // Per group of 2: scales 1 and 2. Per channel: 2. Per tensor: 4.
  const std::vector<float> values = {7.5f, 3.0f, -15.0f, 4.0f, 30.0f, 0.0f, 0.0f, 8.0f};
  const MatrixView<const float> weight(values.data(), 2, 4);

  const QuantizedTensor group = *Quantize(weight, Args(4, true, QuantizationStrategy::kGroup, 2));
  EXPECT_EQ(group.group_size, 2);
  EXPECT_EQ(group.scale, (std::vector<float>{1.0f, 2.0f, 4.0f, 1.0703125f}));  // 8 / 7.5 rounded to bf16
  EXPECT_EQ(group.code, (std::vector<uint8_t>{15, 11, 0, 10, 15, 8, 8, 15}));
  EXPECT_TRUE(group.zero_point.empty());
  EXPECT_EQ(group.scale_dtype, DType::kBF16);

  const QuantizedTensor channel = *Quantize(weight, Args(4, true, QuantizationStrategy::kChannel));
  EXPECT_EQ(channel.group_size, 4);
  EXPECT_EQ(channel.scale, (std::vector<float>{2.0f, 4.0f}));
  EXPECT_EQ(channel.code, (std::vector<uint8_t>{12, 10, 0, 10, 15, 8, 8, 10}));

  const QuantizedTensor tensor = *Quantize(weight, Args(4, true, QuantizationStrategy::kTensor));
  EXPECT_EQ(tensor.scale, (std::vector<float>{4.0f, 4.0f}));
  EXPECT_EQ(tensor.code, (std::vector<uint8_t>{10, 9, 4, 9, 15, 8, 8, 10}));
}

TEST(QuantizeWeight, AsymmetricPerTensorSharesTheZeroPoint) {
  const std::vector<float> values = {0.5f, 2.75f, -1.0f, 0.0f, 0.25f, 0.25f};
  const QuantizedTensor tensor = *Quantize({values.data(), 3, 2}, Args(4, false, QuantizationStrategy::kTensor));
  EXPECT_EQ(tensor.scale, (std::vector<float>{0.25f, 0.25f, 0.25f}));  // 3.75 / 15
  EXPECT_EQ(tensor.zero_point, (std::vector<uint8_t>{4, 4, 4}));
  EXPECT_EQ(tensor.code, (std::vector<uint8_t>{6, 15, 0, 4, 5, 5}));
}

TEST(QuantizeWeight, ReadsRowsByTheirStride) {
  const Matrix padded(5, 40, 1);
  std::vector<float> dense;
  for (int64_t o = 0; o < 5; ++o) dense.insert(dense.end(), padded.view().row(o), padded.view().row(o) + 32);
  const QuantizationArgs args = Args(4, true, QuantizationStrategy::kGroup, 16);
  EXPECT_EQ(Quantize({padded.values.data(), 5, 32, 40}, args)->code, Quantize({dense.data(), 5, 32}, args)->code);
}

TEST(QuantizeWeight, SameBitsForAnyNumberOfThreads) {
  const Matrix weight(75, 96, 2);
  for (const QuantizationArgs& args : {Args(4, true, QuantizationStrategy::kGroup, 32), Args(4, false, QuantizationStrategy::kChannel),
                                       Args(8, false, QuantizationStrategy::kTensor)}) {
    const QuantizedTensor one = *Quantize(weight.view(), args, ClipSearch(), DType::kBF16, 1);
    const QuantizedTensor three = *Quantize(weight.view(), args, ClipSearch(), DType::kBF16, 3);
    EXPECT_EQ(one.code, three.code);
    EXPECT_EQ(one.scale, three.scale);
    EXPECT_EQ(one.zero_point, three.zero_point);
  }
}

// Whatever the strategy, each group is coded with the winner of the search over just its weights.
TEST(QuantizeWeight, GroupsAreSearchedAlone) {
  const Matrix weight(3, 96, 3);
  const QuantizationArgs args = Args(4, false, QuantizationStrategy::kGroup, 32);
  const QuantizedTensor result = *Quantize(weight.view(), args, ClipSearch());
  for (int64_t o = 0; o < 3; ++o) {
    for (int64_t g = 0; g < 3; ++g) {
      const absl::Span<const float> values(weight.view().row(o) + g * 32, 32);
      WeightRange range;
      ASSERT_TRUE(FindRange(values, range));
      const QParams expected = SearchQParams(values, range, args, DType::kBF16, ClipSearch());
      EXPECT_EQ(result.scale[o * 3 + g], expected.scale);
      EXPECT_EQ(result.zero_point[o * 3 + g], expected.zero_point + 8);
    }
  }
}

TEST(QuantizeWeight, SearchAndFinerGroupsReduceTheError) {
  const Matrix weight(64, 256, 4);
  const auto error = [&](const QuantizationArgs& args, const ClipSearch& search) {
    return CompareWeights(weight.view(), *Quantize(weight.view(), args, search)).relative_error;
  };
  for (const bool symmetric : {true, false}) {
    const QuantizationArgs tensor = Args(4, symmetric, QuantizationStrategy::kTensor);
    const QuantizationArgs channel = Args(4, symmetric, QuantizationStrategy::kChannel);
    const QuantizationArgs group = Args(4, symmetric, QuantizationStrategy::kGroup, 32);
    EXPECT_LT(error(tensor, ClipSearch()), error(tensor, kNoClipSearch));
    EXPECT_LT(error(channel, ClipSearch()), error(channel, kNoClipSearch));
    EXPECT_LT(error(group, ClipSearch()), error(group, kNoClipSearch));
    EXPECT_LT(error(channel, ClipSearch()), error(tensor, ClipSearch()));
    EXPECT_LT(error(group, ClipSearch()), error(channel, ClipSearch()));
  }
  EXPECT_LT(error(Args(8, true, QuantizationStrategy::kGroup, 32), ClipSearch()), 0.006);
  EXPECT_LT(error(Args(4, true, QuantizationStrategy::kGroup, 32), ClipSearch()), 0.1);
}

TEST(QuantizeWeight, ScalesAreValuesOfTheStoredType) {
  const Matrix weight(4, 64, 5);
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    const QuantizedTensor result = *Quantize(weight.view(), Args(4, true, QuantizationStrategy::kGroup, 16), ClipSearch(), dtype);
    for (const float scale : result.scale) EXPECT_EQ(scale, RoundToDType(scale, dtype));
    EXPECT_EQ(result.scale_dtype, dtype);
  }
}

TEST(QuantizeWeight, ZeroMatrixIsCodedExactly) {
  const std::vector<float> zeros(64);
  for (const bool symmetric : {true, false}) {
    const QuantizedTensor result = *Quantize({zeros.data(), 2, 32}, Args(4, symmetric, QuantizationStrategy::kGroup, 16), ClipSearch());
    EXPECT_EQ(CompareWeights({zeros.data(), 2, 32}, result).max_abs_error, 0.0);
  }
}

TEST(QuantizeWeight, NamesTheFirstWeightThatIsNotFinite) {
  for (const QuantizationStrategy strategy :
       {QuantizationStrategy::kTensor, QuantizationStrategy::kChannel, QuantizationStrategy::kGroup}) {
    Matrix weight(70, 32, 6);
    weight.values[69 * 32 + 1] = std::numeric_limits<float>::infinity();
    weight.values[40 * 32 + 31] = std::nanf("");
    weight.values[40 * 32 + 17] = -std::numeric_limits<float>::infinity();
    const QuantizationArgs args = Args(4, true, strategy, strategy == QuantizationStrategy::kGroup ? 16 : 0);
    const absl::Status status = Quantize(weight.view(), args, ClipSearch(), DType::kBF16, 2).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(status.message(), "weight[40][17]: expected a finite value, found -inf");
  }
}

double WeightedError(const Matrix& weight, const QuantizedTensor& quantized, const std::vector<float>& importance) {
  double sum = 0;
  std::vector<float> row(static_cast<size_t>(weight.cols));
  for (int64_t o = 0; o < weight.rows; ++o) {
    quantized.DequantizeRow(o, absl::MakeSpan(row));
    for (int64_t i = 0; i < weight.cols; ++i) {
      sum += std::pow(std::fabs(static_cast<double>(row[i]) - weight.view().row(o)[i]), 2.4) * static_cast<double>(importance[i]);
    }
  }
  return sum;
}

// Each group is searched with the importance of its own columns, and a common factor changes nothing.
TEST(QuantizeWeight, ImportanceLowersTheWeightedError) {
  const Matrix weight(48, 128, 8);
  std::vector<float> importance(128);
  for (size_t i = 0; i < importance.size(); ++i) importance[i] = i % 11 == 3 ? 100.0f : 0.1f;
  std::vector<float> scaled = importance;
  for (float& value : scaled) value *= 0x1p70f;
  ThreadPool pool(1);
  for (const QuantizationArgs& args : {Args(4, true, QuantizationStrategy::kGroup, 32), Args(3, false, QuantizationStrategy::kChannel),
                                       Args(2, true, QuantizationStrategy::kTensor)}) {
    const ClipSearch search{.grid = 50, .max_shrink = 0.6};
    const QuantizedTensor plain = *Quantize(weight.view(), args, search);
    const QuantizedTensor weighted = *QuantizeWeight(weight.view(), args, DType::kBF16, search, pool, importance);
    // A whole tensor has one range, and the important columns are like the others.
    const double bound = args.strategy == QuantizationStrategy::kTensor ? 1.0 : 0.99;
    EXPECT_LE(WeightedError(weight, weighted, importance), WeightedError(weight, plain, importance) * bound);
    EXPECT_EQ(QuantizeWeight(weight.view(), args, DType::kBF16, search, pool, scaled)->code, weighted.code);
    EXPECT_EQ(QuantizeWeight(weight.view(), args, DType::kBF16, search, pool, std::vector<float>(128, 3.0f))->scale, plain.scale);
  }
}

TEST(QuantizeWeight, RefusesAnotherImportance) {
  const Matrix weight(2, 32, 9);
  ThreadPool pool(1);
  const auto message = [&](const std::vector<float>& importance) {
    const auto result = QuantizeWeight(weight.view(), {}, DType::kBF16, ClipSearch(), pool, importance);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(result.status().message());
  };
  EXPECT_EQ(message(std::vector<float>(31, 1.0f)), "importance: expected a number per column, in=32, found 31");
  std::vector<float> importance(32, 1.0f);
  importance[7] = -1.0f;
  EXPECT_EQ(message(importance), "importance[7]: expected a finite number >= 0, found -1");
  importance[3] = std::nanf("");
  EXPECT_EQ(message(importance), "importance[3]: expected a finite number >= 0, found nan");
}

// Rows of 896 = 2 * 448 and of 448 / 64: scales 2 and 1/64 per channel, 2 per tensor.
TEST(QuantizeWeight, Fp8HandComputedPerStrategy) {
  const std::vector<float> values = {896.0f, -2.0f, 3.0f, 0.0f, 7.0f, 0.015625f, -1.0f, 0.0234375f};
  const MatrixView<const float> weight(values.data(), 2, 4);
  QuantizationArgs args{.type = QuantizationType::kFloat, .strategy = QuantizationStrategy::kChannel};
  const QuantizedTensor channel = *Quantize(weight, args, ClipSearch());
  EXPECT_EQ(channel.type, QuantizationType::kFloat);
  EXPECT_EQ(channel.group_size, 4);
  EXPECT_EQ(channel.scale, (std::vector<float>{2.0f, 0.015625f}));
  // 448, -1, 1.5, 0; 448, 1, -64, 1.5.
  EXPECT_EQ(channel.code, (std::vector<uint8_t>{0x7E, 0xB8, 0x3C, 0x00, 0x7E, 0x38, 0xE8, 0x3C}));
  std::vector<float> row(4);
  channel.DequantizeRow(1, absl::MakeSpan(row));
  EXPECT_EQ(row, std::vector<float>(values.begin() + 4, values.end()));

  args.strategy = QuantizationStrategy::kTensor;
  const QuantizedTensor tensor = *Quantize(weight, args, ClipSearch());
  EXPECT_EQ(tensor.scale, (std::vector<float>{2.0f, 2.0f}));
  EXPECT_EQ(tensor.code[4], 0x46);  // 3.5
  EXPECT_EQ(tensor.code[5], 0x04);  // 2^-7, a subnormal

  args = {.type = QuantizationType::kFloat, .strategy = QuantizationStrategy::kBlock, .block_rows = 2, .block_cols = 2};
  const QuantizedTensor block = *Quantize(weight, args);
  EXPECT_EQ(block.group_size, 2);
  EXPECT_EQ(block.scale[0], 2.0f);
  EXPECT_EQ(block.scale[1], RoundToBfloat16(3.0f / 448.0f));
  EXPECT_EQ(block.scale[2], block.scale[0]);
  EXPECT_EQ(block.scale[3], block.scale[1]);
  EXPECT_EQ(block.code[3], 0x00);
  EXPECT_EQ(block.code[6], ToFloat8E4M3(-1.0f / block.scale[1]).bits);
}

// Every code is the nearest e4m3 number, and what lies beyond the largest after the scale was rounded down saturates.
TEST(QuantizeWeight, Fp8CodesAreTheNearest) {
  const Matrix weight(40, 256, 11);
  using enum QuantizationStrategy;
  for (const QuantizationArgs& args :
       {QuantizationArgs{.type = QuantizationType::kFloat, .strategy = kTensor},
        QuantizationArgs{.type = QuantizationType::kFloat, .strategy = kChannel},
        QuantizationArgs{.type = QuantizationType::kFloat, .strategy = kGroup, .group_size = 64},
        QuantizationArgs{.type = QuantizationType::kFloat, .strategy = kBlock, .block_rows = 16, .block_cols = 128}}) {
    const QuantizedTensor q = *Quantize(weight.view(), args, ClipSearch(), DType::kBF16, 3);
    ASSERT_EQ(q.group_size, args.columns_per_scale(256));
    for (int64_t o = 0; o < 40; ++o) {
      for (int64_t i = 0; i < 256; ++i) {
        const float scale = q.scale[o * q.num_groups() + i / q.group_size];
        const float error = std::fabs(ToFloat(float8_e4m3fn{q.code[o * 256 + i]}) - weight.values[o * 256 + i] / scale);
        for (int code = 0; code < 256; ++code) {
          if ((code & 0x7F) == 0x7F) continue;
          ASSERT_LE(error, std::fabs(ToFloat(float8_e4m3fn{static_cast<uint8_t>(code)}) - weight.values[o * 256 + i] / scale));
        }
      }
    }
    EXPECT_EQ(q.code, Quantize(weight.view(), args, kNoClipSearch, DType::kBF16, 1)->code);
    EXPECT_LT(CompareWeights(weight.view(), q).relative_error, 0.04);
  }
}

TEST(QuantizeWeight, Fp8BlocksNameTheFirstWeightThatIsNotFinite) {
  Matrix weight(40, 32, 12);
  weight.values[37 * 32 + 20] = std::numeric_limits<float>::quiet_NaN();
  weight.values[21 * 32 + 31] = std::numeric_limits<float>::infinity();
  const QuantizationArgs args{
      .type = QuantizationType::kFloat, .strategy = QuantizationStrategy::kBlock, .block_rows = 16, .block_cols = 16};
  EXPECT_EQ(Quantize(weight.view(), args, kNoClipSearch, DType::kBF16, 2).status().message(),
            "weight[21][31]: expected a finite value, found inf");
}

TEST(QuantizeWeight, RefusesWhatItCannotDo) {
  const Matrix weight(2, 48, 7);
  const auto status = [&](const QuantizationArgs& args) { return Quantize(weight.view(), args).status(); };
  const absl::Status group = status(Args(4, true, QuantizationStrategy::kGroup, 32));
  EXPECT_EQ(group.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(group.message(), "group_size: expected a divisor of in=48, found 32");
  EXPECT_EQ(status({.num_bits = 9}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status({.num_bits = 1}).code(), absl::StatusCode::kUnimplemented);
  const absl::Status block = status({.strategy = QuantizationStrategy::kBlock, .block_rows = 2, .block_cols = 16});
  EXPECT_EQ(block.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(block.message(), HasSubstr("found 8-bit int per block"));
  const absl::Status ends = status(
      {.type = QuantizationType::kFloat, .strategy = QuantizationStrategy::kBlock, .block_rows = 2, .block_cols = 32});
  EXPECT_EQ(ends.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ends.message(), "block_structure: expected rows of whole blocks of 32, found in=48");
  EXPECT_EQ(status({.strategy = QuantizationStrategy::kToken, .dynamic = true}).code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Quantize({weight.values.data(), 0, 48}, {}).status().message(), "weight: expected at least one row and column, found [0, 48]");
}

TEST(QuantizeWeight, RefusesScalesThatOverflow) {
  const std::vector<float> values = {1.0f, 1.0f, 1e6f, 1.0f};
  for (const QuantizationStrategy strategy : {QuantizationStrategy::kTensor, QuantizationStrategy::kChannel}) {
    const absl::Status status = Quantize({values.data(), 2, 2}, Args(4, true, strategy), ClipSearch(), DType::kF16).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("expected a range whose scale fits F16, found one that overflows"));
  }
}

}  // namespace
}  // namespace pith
