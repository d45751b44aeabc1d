#include "nn/linear_kernel.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/gemm_problem.h"

namespace pith {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr QuantizationArgs kInt8Token{.strategy = QuantizationStrategy::kToken, .dynamic = true};
constexpr QuantizationArgs kInt8Tensor{};
constexpr QuantizationArgs kFp8Token{.type = QuantizationType::kFloat, .strategy = QuantizationStrategy::kToken, .dynamic = true};

constexpr QuantizationArgs Groups(QuantizationType type, int size) {
  return {.type = type, .strategy = QuantizationStrategy::kGroup, .group_size = size, .dynamic = true};
}

struct Chosen {
  LinearKernel kernel;
  GemmProblem problem;
};

class LinearKernelTest : public testing::Test {
 protected:
  Chosen Choose(int bits, int64_t group_size, const std::optional<InputQuantization>& input, Isa isa = Isa::kScalar,
                WeightOnlyActivation weight_only = {}, QuantizationType type = QuantizationType::kInt) {
    Chosen chosen{.problem = {.n = 32, .k = 384, .group_size = group_size, .bits = bits}};
    const auto kernel = SelectLinearKernel(GemmWeightFamily(bits, type), input, chosen.problem,
                                           MakeComputeContext(&pool_, isa, weight_only));
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    if (kernel.ok()) chosen.kernel = *kernel;
    return chosen;
  }
  ThreadPool pool_{1};
};

TEST_F(LinearKernelTest, Int8PerTokenOfWeightsPerChannelHasOneScalePerRow) {
  for (const Isa isa : {Isa::kScalar, DetectIsa()}) {
    const Chosen chosen = Choose(8, 384, InputQuantization{kInt8Token}, isa);
    EXPECT_EQ(chosen.kernel.activation, "int8 dynamic per token");
    EXPECT_EQ(chosen.kernel.input, (InputFormat{.kind = GemmActivation::kInt8, .group_size = 384, .sum_group = 384}));
    EXPECT_EQ(chosen.problem.activation, GemmActivation::kInt8);
    EXPECT_EQ(chosen.problem.activation_group, 384);
    EXPECT_THAT(chosen.kernel.kernel->name, HasSubstr("gemm_int8_w8g_f32__"));
  }
}

TEST_F(LinearKernelTest, Int8PerTokenOfWeightsInGroupsHasTheFinerScales) {
  const Chosen chosen = Choose(4, 64, InputQuantization{kInt8Token});
  EXPECT_EQ(chosen.kernel.activation, "int8 dynamic per row and group of 64");
  EXPECT_EQ(chosen.kernel.input, (InputFormat{.kind = GemmActivation::kInt8, .group_size = 64, .sum_group = 64}));
  EXPECT_EQ(Choose(4, 192, InputQuantization{kInt8Token}).kernel.activation, "int8 dynamic per row and group of 96");
}

TEST_F(LinearKernelTest, OutliersAreKeptApartWhereCodesHaveAByteEach) {
  const WeightOnlyActivation llm_int8(GemmActivation::kInt8, 6.0f);
  InputFormat format{GemmActivation::kInt8, 384, 64};
  format.outlier_threshold = 6.0f;
  for (const Isa isa : {Isa::kScalar, DetectIsa()}) {
    const Chosen chosen = Choose(8, 64, std::nullopt, isa, llm_int8);
    EXPECT_EQ(chosen.kernel.activation, "int8 dynamic per token, outliers from 6 in f32");
    EXPECT_EQ(chosen.kernel.input, format);
    ASSERT_NE(chosen.kernel.kernel->add_outliers, nullptr);
    EXPECT_EQ(Choose(4, 64, std::nullopt, isa, llm_int8).kernel.input, (InputFormat{GemmActivation::kInt16, 64, 64}));
    EXPECT_EQ(Choose(8, 64, InputQuantization{kInt8Token}, isa, llm_int8).kernel.input, (InputFormat{GemmActivation::kInt8, 64, 64}));
  }
}

TEST_F(LinearKernelTest, DeclaredOutliersAreValuesOrColumns) {
  QuantizationArgs args = kInt8Token;
  args.outlier_threshold = 4.5f;
  for (const Isa isa : {Isa::kScalar, DetectIsa()}) {
    const Chosen values = Choose(8, 384, InputQuantization{args}, isa, GemmActivation::kBf16);
    EXPECT_EQ(values.kernel.activation, "int8 dynamic per token, outliers from 4.5 in f32");
    EXPECT_EQ(values.kernel.input.outlier_threshold, 4.5f);
    EXPECT_NE(values.kernel.kernel->add_outliers, nullptr);
    EXPECT_EQ(values.kernel.outlier_kernel, nullptr);
    InputQuantization fixed{args};
    fixed.args.fixed_outliers = true;
    fixed.outlier_columns = {5, 9, 200};
    const Chosen columns = Choose(8, 384, fixed, isa);
    EXPECT_EQ(columns.kernel.activation, "int8 dynamic per token, outlier columns in bf16");
    EXPECT_EQ(columns.kernel.input,
              (InputFormat{.kind = GemmActivation::kInt8, .group_size = 384, .sum_group = 384, .outlier_columns = {5, 9, 200}}));
    ASSERT_NE(columns.kernel.outlier_kernel, nullptr);
    EXPECT_THAT(columns.kernel.outlier_kernel->name, HasSubstr("gemm_bf16_bf16_f32__"));
    EXPECT_EQ(columns.kernel.outlier_problem.n, 32);
    EXPECT_EQ(columns.kernel.outlier_problem.k, 3);
    fixed.outlier_columns.clear();  // none in this module
    const Chosen none = Choose(8, 384, fixed, isa);
    EXPECT_EQ(none.kernel.outlier_kernel, nullptr);
    EXPECT_EQ(none.kernel.input, (InputFormat{GemmActivation::kInt8, 384, 384}));
  }
}

// A row must not depend on the rows beside it.
TEST_F(LinearKernelTest, Int8DynamicPerTensorBecomesPerToken) {
  EXPECT_EQ(Choose(8, 384, InputQuantization{{.dynamic = true}}).kernel.activation, "int8 dynamic per token");
}

TEST_F(LinearKernelTest, Int8PerGroupAsDeclared) {
  const Chosen chosen = Choose(8, 384, InputQuantization{Groups(QuantizationType::kInt, 96)});
  EXPECT_EQ(chosen.kernel.activation, "int8 dynamic per row and group of 96");
  EXPECT_EQ(chosen.kernel.input.group_size, 96);
}

TEST_F(LinearKernelTest, StaticScalesAreOfTheWholeRow) {
  const Chosen channel = Choose(8, 384, InputQuantization{kInt8Tensor, 0.25f});
  EXPECT_EQ(channel.kernel.activation, "int8 static per tensor");
  EXPECT_EQ(channel.kernel.input, (InputFormat{GemmActivation::kInt8, 384, 384, 0.25f}));
  EXPECT_EQ(Choose(4, 64, InputQuantization{kInt8Tensor, 0.25f}).kernel.input, (InputFormat{GemmActivation::kInt8, 384, 64, 0.25f}));
}

TEST_F(LinearKernelTest, WhatIsDeclaredBeatsTheContext) {
  const Chosen declared = Choose(8, 384, InputQuantization{kInt8Token}, Isa::kScalar, GemmActivation::kBf16);
  EXPECT_EQ(declared.kernel.activation, "int8 dynamic per token");
  EXPECT_EQ(Choose(8, 384, std::nullopt, Isa::kScalar, GemmActivation::kBf16).kernel.activation, "bf16");
  EXPECT_EQ(Choose(8, 384, std::nullopt).kernel.activation, "int16 dynamic");
}

TEST_F(LinearKernelTest, Fp8AsDeclared) {
  constexpr QuantizationType kFloat = QuantizationType::kFloat;
  for (const Isa isa : {Isa::kScalar, DetectIsa()}) {
    for (const int64_t group_size : {384, 128}) {
      const Chosen dynamic = Choose(8, group_size, InputQuantization{kFp8Token}, isa, GemmActivation::kInt16, kFloat);
      EXPECT_EQ(dynamic.kernel.activation, "fp8 dynamic per token");
      EXPECT_EQ(dynamic.kernel.input, InputFormat{.kind = GemmActivation::kFp8});
      EXPECT_THAT(dynamic.kernel.kernel->name, HasSubstr("gemm_fp8_f8g_f32__"));
      EXPECT_NE(dynamic.kernel.kernel->emulated, nullptr);
      const Chosen fixed = Choose(8, group_size, InputQuantization{{.type = kFloat}, 0.5f}, isa, GemmActivation::kInt16, kFloat);
      EXPECT_EQ(fixed.kernel.activation, "fp8 static per tensor");
      EXPECT_EQ(fixed.kernel.input, (InputFormat{.kind = GemmActivation::kFp8, .static_scale = 0.5f}));
      const Chosen groups = Choose(8, group_size, InputQuantization{Groups(kFloat, 128)}, isa, GemmActivation::kInt16, kFloat);
      EXPECT_EQ(groups.kernel.activation, "bf16 (declared fp8 dynamic per group of 128)");
      EXPECT_THAT(groups.kernel.refused, Contains(HasSubstr("no kernel multiplies these weights with them")));
      const Chosen weight_only = Choose(8, group_size, std::nullopt, isa, GemmActivation::kInt16, kFloat);
      EXPECT_EQ(weight_only.kernel.activation, "bf16");
      EXPECT_THAT(weight_only.kernel.kernel->name, HasSubstr("gemm_bf16_f8g_f32__"));
      const Chosen int8 = Choose(8, group_size, InputQuantization{kInt8Token}, isa, GemmActivation::kInt16, kFloat);
      EXPECT_EQ(int8.kernel.activation, "bf16 (declared int8 dynamic per token)");
    }
  }
}

TEST_F(LinearKernelTest, WhatNoKernelRunsIsMultipliedWithBf16) {
  const Chosen fp8 = Choose(4, 64, InputQuantization{kFp8Token});
  EXPECT_EQ(fp8.kernel.activation, "bf16 (declared fp8 dynamic per token)");
  EXPECT_EQ(fp8.kernel.input, InputFormat{});
  EXPECT_EQ(fp8.problem.activation, GemmActivation::kBf16);
  EXPECT_THAT(fp8.kernel.refused, Contains("activations fp8 dynamic per token: no kernel multiplies these weights with them"));
  const Chosen four_bits = Choose(8, 384, InputQuantization{{.num_bits = 4, .strategy = QuantizationStrategy::kToken, .dynamic = true}});
  EXPECT_EQ(four_bits.kernel.activation, "bf16 (declared int4 dynamic per token)");
  // 12 is no multiple of a unit, and 36 no divisor of 384.
  const Chosen odd = Choose(4, 12, InputQuantization{kInt8Token});
  EXPECT_EQ(odd.kernel.activation, "bf16 (declared int8 dynamic per token)");
  EXPECT_THAT(odd.kernel.refused, Contains("gemm_int8_w4g_f32__scalar: group_size % 8 != 0"));
  EXPECT_THAT(Choose(8, 384, InputQuantization{Groups(QuantizationType::kInt, 36)}).kernel.refused,
              Contains("gemm_int8_w8g_f32__scalar: activation group does not divide k"));
  EXPECT_THAT(Choose(8, 384, InputQuantization{kInt8Token}).kernel.refused, testing::Each(HasSubstr(": needs ")));
}

}  // namespace
}  // namespace pith
