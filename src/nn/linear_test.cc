#include "nn/linear.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/test_matrix.h"

namespace pith {
namespace {

using testing::HasSubstr;

// Kernels may carry activations as 16-bit fixed point per group (relative to the largest one), and sum in f32: both stay below this
// share of the sum of absolute products.
constexpr double kTolerance = 1.0 / 4096;

std::vector<LinearSource> SourcesOf(const std::vector<TestMatrix>& parts) {
  std::vector<LinearSource> sources;
  for (const TestMatrix& part : parts) sources.push_back(part.Source());
  return sources;
}

// Runs `parts` as one Linear with every ISA and compares each column with the double reference of the part it belongs to.
void ExpectMatchesReference(const std::vector<TestMatrix>& parts, int64_t m) {
  const int64_t in = parts[0].in;
  const std::vector<uint16_t> activation = RandomActivations(m * (in + 3), 99);
  ThreadPool pool(2);
  for (const Isa isa : ThisCpu().SupportedIsas()) {
    const ComputeContext context = MakeComputeContext(&pool, isa);
    const auto linear = Linear::Load(SourcesOf(parts), context);
    ASSERT_TRUE(linear.ok()) << linear.status();
    const int64_t stride = linear->out() + 5;
    std::vector<float> out(m * stride, -7.0f);
    linear->Run(context, MakeInput(context, *linear, activation.data(), m, in + 3), 0, m, out.data(), stride);
    for (int64_t r = 0; r < m; ++r) {
      int64_t column = 0;
      for (const TestMatrix& part : parts) {
        for (int64_t o = 0; o < part.out; ++o, ++column) {
          const DotProduct expected = ReferenceDot(part, o, activation.data() + r * (in + 3));
          ASSERT_NEAR(out[r * stride + column], expected.value, kTolerance * expected.magnitude)
              << IsaName(isa) << " " << part.name << " row " << r << " column " << o;
        }
      }
      for (; column < stride; ++column) ASSERT_EQ(out[r * stride + column], -7.0f);  // nothing written past the row
    }
  }
}

TEST(Linear, Dense) {
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) ExpectMatchesReference({RandomDense("d", 37, 72, 1, dtype)}, 3);
}

TEST(Linear, QuantizedOfEveryKind) {
  for (const TestOffset offset : {TestOffset::kSymmetric, TestOffset::kZeroPoint, TestOffset::kMin}) {
    for (const int bits : {3, 4, 6, 8}) ExpectMatchesReference({RandomQuantized("q", 37, 96, bits, 32, offset, 2)}, 2);
  }
}

TEST(Linear, Fp8WeightsPerChannelAndGroup) {
  for (const int64_t group_size : {128, 32})
    ExpectMatchesReference({RandomFp8("f", 37, 128, group_size, 4), RandomDense("d", 8, 128, 5)}, 3);
}

TEST(Linear, EqualLayoutsBecomeOneMatrix) {
  const std::vector<TestMatrix> parts = {RandomDense("q", 40, 64, 1), RandomDense("k", 24, 64, 2), RandomDense("v", 24, 64, 3)};
  ExpectMatchesReference(parts, 1);
  ThreadPool pool(1);
  const ComputeContext context = MakeComputeContext(&pool, Isa::kScalar);
  const auto linear = Linear::Load(SourcesOf(parts), context);
  ASSERT_TRUE(linear.ok());
  // 88 columns are 5.5 panels; three matrices of their own would take 3 + 2 + 2.
  EXPECT_EQ(linear->resident_bytes(), 6 * kGemmPanel * 64 * 2);
  EXPECT_EQ(linear->data_path().size(), 3u);
}

TEST(Linear, DifferentLayoutsStaySeparateAndInOrder) {
  ExpectMatchesReference(
      {RandomQuantized("q", 40, 128, 4, 32, TestOffset::kMin, 1, "Q4_K"), RandomQuantized("k", 24, 128, 4, 32, TestOffset::kMin, 2, "Q4_K"),
       RandomQuantized("v", 24, 128, 6, 16, TestOffset::kSymmetric, 3, "Q6_K")},
      4);
  ExpectMatchesReference({RandomDense("gate", 17, 64, 1), RandomQuantized("up", 33, 64, 4, 64, TestOffset::kSymmetric, 2)}, 2);
  ExpectMatchesReference(
      {RandomQuantized("a", 16, 64, 4, 64, TestOffset::kSymmetric, 1), RandomQuantized("b", 16, 64, 4, 32, TestOffset::kSymmetric, 2),
       RandomQuantized("c", 16, 64, 4, 32, TestOffset::kZeroPoint, 3)},
      1);
}

TEST(Linear, BiasAndAccumulate) {
  const std::vector<TestMatrix> parts = {RandomDense("a", 20, 48, 1), RandomDense("b", 4, 48, 2), RandomDense("c", 8, 48, 3)};
  const std::vector<float> bias_a(20, 3.0f), bias_c(8, -50.0f);
  const std::vector<uint16_t> activation = RandomActivations(48, 5);
  ThreadPool pool(2);
  for (const Isa isa : ThisCpu().SupportedIsas()) {
    const ComputeContext context = MakeComputeContext(&pool, isa);
    const auto linear = Linear::Load({parts[0].Source(bias_a), parts[1].Source(), parts[2].Source(bias_c)}, context);
    ASSERT_TRUE(linear.ok());
    std::vector<float> out(32, 1000.0f);
    linear->Run(context, MakeInput(context, *linear, activation.data(), 1, 48), 0, 1, out.data(), 32, /*accumulate=*/true);
    for (int64_t o = 0; o < 32; ++o) {
      const TestMatrix& part = o < 20 ? parts[0] : o < 24 ? parts[1] : parts[2];
      const DotProduct dot = ReferenceDot(part, o - (o < 20 ? 0 : o < 24 ? 20 : 24), activation.data());
      const double bias = o < 20 ? 3.0 : o < 24 ? 0.0 : -50.0;
      EXPECT_NEAR(out[o], 1000.0 + bias + dot.value, kTolerance * dot.magnitude + 1e-4) << o;
    }
  }
}

TEST(Linear, BiasReachesItsColumnsInEveryMatrix) {
  const TestMatrix dense = RandomDense("a", 20, 64, 1);
  const TestMatrix packed = RandomQuantized("b", 18, 64, 4, 32, TestOffset::kSymmetric, 2);
  std::vector<float> bias(18);
  for (int i = 0; i < 18; ++i) bias[i] = static_cast<float>(100 * i);
  const std::vector<uint16_t> activation = RandomActivations(64, 5);
  ThreadPool pool(2);
  const ComputeContext context = MakeComputeContext(&pool, DetectIsa());
  const auto linear = Linear::Load({dense.Source(std::vector<float>(20, -7.0f)), packed.Source(bias)}, context);
  ASSERT_TRUE(linear.ok());
  std::vector<float> out(38);
  linear->Run(context, MakeInput(context, *linear, activation.data(), 1, 64), 0, 1, out.data(), 38);
  for (int64_t o = 0; o < 38; ++o) {
    const DotProduct dot = ReferenceDot(o < 20 ? dense : packed, o < 20 ? o : o - 20, activation.data());
    EXPECT_NEAR(out[o], (o < 20 ? -7.0 : bias[o - 20]) + dot.value, kTolerance * dot.magnitude + 1e-3) << o;
  }
}

TEST(Linear, SameBitsForEveryThreadCount) {
  const std::vector<TestMatrix> parts = {RandomQuantized("a", 100, 128, 4, 64, TestOffset::kZeroPoint, 1), RandomDense("b", 60, 128, 2)};
  const std::vector<uint16_t> activation = RandomActivations(5 * 128, 6);
  for (const Isa isa : ThisCpu().SupportedIsas()) {
    std::vector<float> first;
    for (const int threads : {1, 2, 5}) {
      ThreadPool pool(threads);
      const ComputeContext context = MakeComputeContext(&pool, isa);
      const auto linear = Linear::Load(SourcesOf(parts), context);
      ASSERT_TRUE(linear.ok());
      std::vector<float> out(5 * 160);
      linear->Run(context, MakeInput(context, *linear, activation.data(), 5, 128), 0, 5, out.data(), 160);
      if (first.empty()) first = out;
      EXPECT_EQ(out, first) << threads;
    }
  }
}

TEST(Linear, ReportsItsDataPath) {
  ThreadPool pool(1);
  const ComputeContext context = MakeComputeContext(&pool, Isa::kScalar);
  const TestMatrix dense = RandomDense("layer.gate", 16, 64, 1, DType::kF32);
  const TestMatrix packed = RandomQuantized("layer.up", 32, 64, 4, 32, TestOffset::kZeroPoint, 2);
  const auto linear = Linear::Load({dense.Source(), packed.Source()}, context);
  ASSERT_TRUE(linear.ok());
  const TensorDataPath& a = linear->data_path()[0];
  EXPECT_EQ(a.name, "layer.gate");
  EXPECT_EQ(a.packing, "f32 rounded to bf16");
  EXPECT_EQ(a.scheme, "BF16");
  EXPECT_EQ(a.stored_bits, 32);
  EXPECT_EQ(a.kernel, "gemm_bf16_bf16_f32__scalar");
  EXPECT_EQ(a.isa, "scalar");
  EXPECT_EQ(a.activation, "bf16");
  EXPECT_EQ(a.output, "f32");
  EXPECT_EQ(a.stored_bytes, 16 * 64 * 4);
  EXPECT_EQ(a.resident_bytes, 16 * 64 * 2);
  const TensorDataPath& b = linear->data_path()[1];
  EXPECT_EQ(b.packing, "pack-quantized");
  EXPECT_EQ(b.scheme, "W4A16_ASYM");
  EXPECT_EQ(b.scale_dtype, "bf16");
  EXPECT_EQ(b.group_size, 32);
  EXPECT_DOUBLE_EQ(b.stored_bits, 4.5);
  EXPECT_EQ(b.kernel, "gemm_int16_w4g_f32__scalar");
  EXPECT_EQ(b.activation, "int16 dynamic");
  EXPECT_EQ(b.out, 32);
  EXPECT_EQ(b.in, 64);
}

TEST(Linear, RowsOfAnInputAreItsRows) {
  const TestMatrix packed = RandomQuantized("a", 24, 64, 4, 32, TestOffset::kSymmetric, 2);
  const std::vector<uint16_t> activation = RandomActivations(5 * 64, 6);
  ThreadPool pool(2);
  const ComputeContext context = MakeComputeContext(&pool, DetectIsa());
  const auto linear = Linear::Load({packed.Source()}, context);
  ASSERT_TRUE(linear.ok());
  const LinearInput input = MakeInput(context, *linear, activation.data(), 5, 64);
  std::vector<float> whole(5 * 24), part(2 * 24);
  linear->Run(context, input, 0, 5, whole.data(), 24);
  linear->Run(context, input, 3, 2, part.data(), 24);
  EXPECT_EQ(part, std::vector<float>(whole.begin() + 3 * 24, whole.end()));
}

TEST(Linear, ColumnsOfARunAreItsColumns) {
  constexpr int64_t kOut = 48 + 40 + 20, kRows = 9;  // two matrices: {48, 40} and {20}
  const std::vector<TestMatrix> parts = {RandomQuantized("a", 48, 64, 4, 32, TestOffset::kZeroPoint, 1),
                                         RandomQuantized("b", 40, 64, 4, 32, TestOffset::kZeroPoint, 2), RandomDense("c", 20, 64, 3)};
  std::vector<float> bias(40);
  for (int i = 0; i < 40; ++i) bias[i] = static_cast<float>(i);
  const std::vector<uint16_t> activation = RandomActivations(kRows * 64, 6);
  ThreadPool pool(2);
  for (const Isa isa : ThisCpu().SupportedIsas()) {
    const ComputeContext context = MakeComputeContext(&pool, isa);
    const auto linear = Linear::Load({parts[0].Source(), parts[1].Source(bias), parts[2].Source()}, context);
    ASSERT_TRUE(linear.ok());
    std::vector<int64_t> begins;
    for (int64_t column = -1; column <= kOut; ++column) {
      if (linear->IsPanelBegin(column)) begins.push_back(column);
    }
    EXPECT_EQ(begins, std::vector<int64_t>({0, 16, 32, 48, 64, 80, 88, 104}));
    const LinearInput input = MakeInput(context, *linear, activation.data(), kRows, 64);
    std::vector<float> whole(kRows * kOut);
    linear->Run(context, input, 0, kRows, whole.data(), kOut);
    begins.push_back(kOut);
    for (const int64_t begin : begins) {
      for (const int64_t end : begins) {
        if (begin >= end) continue;
        const int64_t columns = end - begin;
        std::vector<float> part(7 * columns);
        linear->RunColumns(input, 2, 7, begin, end, part.data(), columns);
        for (int64_t i = 0; i < 7 * columns; ++i) {
          ASSERT_EQ(part[i], whole[(2 + i / columns) * kOut + begin + i % columns]) << IsaName(isa) << " " << begin << " " << end;
        }
      }
    }
  }
}

TEST(Linear, ActivationsAreWhatTheContextAsksForWhereAKernelCan) {
  ThreadPool pool(1);
  const TestMatrix groups = RandomQuantized("a", 16, 96, 4, 32, TestOffset::kSymmetric, 1);
  const TestMatrix channel = RandomQuantized("b", 16, 96, 8, 96, TestOffset::kSymmetric, 2);
  const TestMatrix long_channel = RandomQuantized("c", 16, 384, 8, 384, TestOffset::kSymmetric, 2);
  const TestMatrix odd = RandomQuantized("d", 16, 36, 4, 12, TestOffset::kSymmetric, 3);
  const auto format = [&](const TestMatrix& matrix, GemmActivation activation) {
    const auto linear = Linear::Load({matrix.Source()}, MakeComputeContext(&pool, DetectIsa(), activation));
    CHECK(linear.ok());
    CHECK_EQ(linear->formats().size(), 1u);
    return linear->formats()[0];
  };
  EXPECT_EQ(format(groups, GemmActivation::kInt16), (InputFormat{GemmActivation::kInt16, 32, 32}));
  EXPECT_EQ(format(groups, GemmActivation::kInt8), (InputFormat{GemmActivation::kInt8, 32, 32}));
  EXPECT_EQ(format(groups, GemmActivation::kBf16), InputFormat{});
  EXPECT_EQ(format(channel, GemmActivation::kInt16), (InputFormat{GemmActivation::kInt16, 96, 96}));
  EXPECT_EQ(format(long_channel, GemmActivation::kInt16), (InputFormat{GemmActivation::kInt16, 128, 128}));
  EXPECT_EQ(format(odd, GemmActivation::kInt16), InputFormat{});
  const auto linear = Linear::Load({odd.Source()}, MakeComputeContext(&pool, Isa::kScalar));
  EXPECT_THAT(linear->data_path()[0].refused, testing::Contains("gemm_int16_w4g_f32__scalar: group_size % 8 != 0"));
}

// Rows with a few values far beyond the others: with one int8 scale per row those swallow the rest; kept apart they cost nothing.
TEST(Linear, OutliersKeptApartLeaveTheOthersExact) {
  constexpr int64_t kRows = 5, kIn = 160, kOut = 40;
  std::vector<uint16_t> activation = RandomActivations(kRows * kIn, 7);
  for (uint16_t& bits : activation) bits = ToBfloat16(std::fmin(ToFloat(bfloat16{bits}), 3.0f)).bits;
  for (const int64_t i : {17, 2 * 160 + 3, 2 * 160 + 90, 4 * 160 + 159}) activation[i] = ToBfloat16(300.0f).bits;
  ThreadPool pool(2);
  for (const TestOffset offset : {TestOffset::kSymmetric, TestOffset::kZeroPoint, TestOffset::kMin}) {
    const TestMatrix matrix = RandomQuantized("m", kOut, kIn, 8, 32, offset, 3);
    double largest = 0;
    for (const float w : matrix.values) largest = std::fmax(largest, std::fabs(w));
    for (const Isa isa : ThisCpu().SupportedIsas()) {
      double error[2] = {};
      for (const float threshold : {0.0f, 6.0f}) {
        const ComputeContext context = MakeComputeContext(&pool, isa, {GemmActivation::kInt8, threshold});
        const auto linear = Linear::Load({matrix.Source()}, context);
        ASSERT_TRUE(linear.ok()) << linear.status();
        std::vector<float> out(kRows * kOut);
        const LinearInput input = MakeInput(context, *linear, activation.data(), kRows, kIn);
        linear->Run(context, input, 0, kRows, out.data(), kOut);
        for (int64_t i = 0; i < kRows * kOut; ++i) {
          const double expected = ReferenceDot(matrix, i % kOut, activation.data() + i / kOut * kIn).value;
          error[threshold > 0] = std::fmax(error[threshold > 0], std::fabs(out[i] - expected));
        }
        std::vector<float> alone(kOut);  // the bits of a row do not depend on the others
        linear->Run(context, input, 2, 1, alone.data(), kOut);
        EXPECT_EQ(alone, std::vector<float>(out.begin() + 2 * kOut, out.begin() + 3 * kOut)) << IsaName(isa);
      }
      // Half a step of 3.9 / 127 at most, for every k, and f32 roundings of products of 300.
      EXPECT_LT(error[1], kIn * largest * (0.5 * 4.5 / 127 + 300 * 0x1p-22)) << IsaName(isa);
      EXPECT_LT(10 * error[1], error[0]) << IsaName(isa);
    }
  }
}

// Two channels a hundred times the rest, listed as outliers: their products are those of bf16, and the others keep their steps.
TEST(Linear, OutlierColumnsAreMultipliedInBf16) {
  constexpr int64_t kRows = 37, kIn = 160, kOut = 40;
  std::vector<uint16_t> activation = RandomActivations(kRows * kIn, 7);
  for (int64_t r = 0; r < kRows; ++r) {
    for (const int64_t i : {3, 90}) activation[r * kIn + i] = ToBfloat16(100.0f * static_cast<float>(r - 20) + static_cast<float>(i)).bits;
  }
  ThreadPool pool(2);
  const TestMatrix matrix = RandomWithOutlierColumns("m", kOut, kIn, {3, 90, 159}, 3);
  double largest = 0;
  for (const float w : matrix.values) largest = std::fmax(largest, std::fabs(w));
  std::vector<float> bias(kOut);
  for (int64_t o = 0; o < kOut; ++o) bias[o] = static_cast<float>(o);
  for (const Isa isa : ThisCpu().SupportedIsas()) {
    const ComputeContext context = MakeComputeContext(&pool, isa);
    const auto linear = Linear::Load({matrix.Source(bias)}, context);
    ASSERT_TRUE(linear.ok()) << linear.status();
    EXPECT_EQ(linear->data_path()[0].outlier_columns, (std::vector<int32_t>{3, 90, 159}));
    const LinearInput input = MakeInput(context, *linear, activation.data(), kRows, kIn);
    std::vector<float> out(kRows * kOut, 0.25f), read(kIn);
    linear->Run(context, input, 0, kRows, out.data(), kOut, /*accumulate=*/true);
    for (int64_t i = 0; i < kRows * kOut; ++i) {
      const DotProduct dot = ReferenceDot(matrix, i % kOut, activation.data() + i / kOut * kIn);
      // Half a step of 4.5 / 127 at most for every k, and f32 roundings.
      const double bound = kIn * largest * 0.5 * 4.5 / 127 + dot.magnitude * 0x1p-20;
      EXPECT_NEAR(out[i], 0.25 + bias[i % kOut] + dot.value, bound) << IsaName(isa) << " " << i / kOut << " " << i % kOut;
    }
    // The bits of a row depend neither on the others nor on who computes which columns.
    std::vector<float> alone(kOut, 0.25f);
    linear->Run(context, input, 20, 1, alone.data(), kOut, /*accumulate=*/true);
    EXPECT_EQ(alone, std::vector<float>(out.begin() + 20 * kOut, out.begin() + 21 * kOut)) << IsaName(isa);
    std::vector<float> whole(kRows * kOut), columns(kRows * 24);
    linear->Run(context, input, 0, kRows, whole.data(), kOut);
    linear->RunColumns(input, 0, kRows, 16, 40, columns.data(), 24);
    for (int64_t i = 0; i < kRows * 24; ++i) ASSERT_EQ(columns[i], whole[i / 24 * kOut + 16 + i % 24]) << IsaName(isa) << " " << i;
    for (const int64_t o : {0, 17, 39}) {
      linear->ReadRow(o, read.data());
      EXPECT_EQ(read, std::vector<float>(matrix.values.begin() + o * kIn, matrix.values.begin() + (o + 1) * kIn)) << IsaName(isa);
    }
  }
}

// What the arithmetic of quantized activations comes to, by the formulas: codes of the row times codes of the weights.
double QuantizedProduct(const TestMatrix& matrix, int64_t o, const std::vector<float>& row, float static_scale) {
  const bool fp8 = matrix.input->args.type == QuantizationType::kFloat;
  float largest = 0;
  for (const float x : row) largest = std::fmax(largest, std::fabs(x));
  const float limit = fp8 ? 448.0f : 127.0f, scale = static_scale > 0 ? static_scale : largest / limit;
  double sum = 0;
  for (int64_t i = 0; i < matrix.in; ++i) {
    const float scaled = static_scale > 0 ? row[i] / scale : row[i] * (limit / largest);
    const double code = fp8 ? ToFloat(ToFloat8E4M3(scaled)) : std::fmin(std::fmax(std::nearbyint(scaled), -128.0), 127.0);
    sum += code * static_cast<double>(scale) * matrix.values[o * matrix.in + i];
  }
  return sum;
}

TEST(Linear, DeclaredActivationsAreWhatIsMultiplied) {
  const std::vector<uint16_t> activation = RandomActivations(3 * 160, 7);
  ThreadPool pool(2);
  using enum QuantizationType;
  // 0.01: values beyond 1.27 are clamped; 0.002: those beyond 0.896.
  for (const auto& [type, static_scale] :
       {std::pair(kInt, 0.0f), std::pair(kInt, 0.01f), std::pair(kFloat, 0.0f), std::pair(kFloat, 0.002f)}) {
    TestMatrix matrix = type == kInt ? RandomQuantized("m", 40, 160, 8, 160, TestOffset::kSymmetric, 1, "int-quantized")
                                     : RandomFp8("m", 40, 160, 160, 1);
    const QuantizationArgs per_token{.type = type, .strategy = QuantizationStrategy::kToken, .dynamic = true};
    matrix.input = static_scale > 0 ? InputQuantization{{.type = type}, static_scale} : InputQuantization{per_token};
    double largest = 0;
    for (const float w : matrix.values) largest = std::fmax(largest, std::fabs(w));
    for (const Isa isa : ThisCpu().SupportedIsas()) {
      const ComputeContext context = MakeComputeContext(&pool, isa);
      const auto linear = Linear::Load({matrix.Source()}, context);
      ASSERT_TRUE(linear.ok()) << linear.status();
      EXPECT_EQ(linear->data_path()[0].activation,
                absl::StrCat(type == kInt ? "int8" : "fp8", static_scale > 0 ? " static per tensor" : " dynamic per token"));
      const bool has_bf16 = isa == Isa::kAvx512Vnni || isa == Isa::kAmx;  // products
      EXPECT_EQ(linear->data_path()[0].emulated, type == kInt ? "" : has_bf16 ? "fp8 as bf16" : "fp8 as f32");
      std::vector<float> out(3 * 40);
      linear->Run(context, MakeInput(context, *linear, activation.data(), 3, 160), 0, 3, out.data(), 40);
      for (int64_t r = 0; r < 3; ++r) {
        std::vector<float> row;
        for (int64_t i = 0; i < 160; ++i) row.push_back(ToFloat(bfloat16{activation[r * 160 + i]}));
        for (int64_t o = 0; o < 40; ++o) {
          ASSERT_NEAR(out[r * 40 + o], QuantizedProduct(matrix, o, row, static_scale), 1e-4 * largest * 160)
              << IsaName(isa) << " " << r << " " << o;
        }
      }
    }
  }
}

// q and k were calibrated apart from v: three parts, two matrices, each with its own scale.
TEST(Linear, PartsWithOtherStaticScalesKeepThem) {
  std::vector<TestMatrix> parts;
  for (const float scale : {0.02f, 0.02f, 0.03f}) {
    parts.push_back(RandomQuantized("m", 16, 64, 8, 64, TestOffset::kSymmetric, parts.size(), "int-quantized"));
    parts.back().input = InputQuantization{{}, scale};
  }
  ThreadPool pool(1);
  const ComputeContext context = MakeComputeContext(&pool, DetectIsa());
  const auto together = Linear::Load(SourcesOf(parts), context);
  ASSERT_TRUE(together.ok());
  EXPECT_EQ(together->formats().size(), 2u);
  const std::vector<uint16_t> activation = RandomActivations(64, 9);
  std::vector<float> out(48), alone(16);
  together->Run(context, MakeInput(context, *together, activation.data(), 1, 64), 0, 1, out.data(), 48);
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto linear = Linear::Load({parts[i].Source()}, context);
    linear->Run(context, MakeInput(context, *linear, activation.data(), 1, 64), 0, 1, alone.data(), 16);
    EXPECT_EQ(alone, std::vector<float>(out.begin() + 16 * i, out.begin() + 16 * (i + 1))) << i;
  }
}

TEST(Linear, RefusesWeightsThatAreNotFinite) {
  ThreadPool pool(2);
  const ComputeContext context = MakeComputeContext(&pool, Isa::kScalar);
  const TestMatrix good = RandomDense("layer.q_proj", 16, 32, 1);
  TestMatrix bad = RandomDense("layer.k_proj", 16, 32, 2);
  bad.dense->as<bfloat16>()[5 * 32 + 31] = ToBfloat16(std::nanf(""));
  absl::Status status = Linear::Load({good.Source(), bad.Source()}, context).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "layer.k_proj.weight: expected finite values, found NaN at [5, 31]");

  TestMatrix quantized = RandomQuantized("layer.v_proj", 16, 64, 4, 32, TestOffset::kMin, 3);
  quantized.quantized->scale[7] = std::numeric_limits<float>::infinity();
  status = Linear::Load({quantized.Source()}, context).status();
  EXPECT_EQ(status.message(), "layer.v_proj.weight (scale): expected finite values, found infinity at [3, 1]");
  quantized.quantized->scale[7] = 1.0f;
  quantized.quantized->min[0] = std::nanf("");
  EXPECT_THAT(std::string(Linear::Load({quantized.Source()}, context).status().message()), HasSubstr("(min)"));
}

}  // namespace
}  // namespace pith
