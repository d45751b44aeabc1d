#include "kernels/gemm_problem.h"

#include <cmath>
#include <limits>
#include <vector>

#include "base/float_types.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "kernels/registry.h"
#include "tensor/tensor.h"

namespace pith {
namespace {

TEST(NarrowestExactScale, TakesTwoBytesOnlyWhenNothingIsLost) {
  const float third = 1.0f / 3.0f;
  EXPECT_EQ(NarrowestExactScale({}, {}), GemmScale::kF16);
  EXPECT_EQ(NarrowestExactScale({0.5f, -0.0f, 65504.0f, 0x1p-24f}, {}), GemmScale::kF16);
  EXPECT_EQ(NarrowestExactScale({ToFloat(ToFloat16(third))}, {}), GemmScale::kF16);
  EXPECT_EQ(NarrowestExactScale({0.5f, 0x1p-30f}, {}), GemmScale::kBf16);  // below the f16 range
  EXPECT_EQ(NarrowestExactScale({0.5f}, {65536.0f}), GemmScale::kBf16);    // above it, in the mins
  EXPECT_EQ(NarrowestExactScale({third}, {}), GemmScale::kF32);
  EXPECT_EQ(NarrowestExactScale({0.5f}, {third}), GemmScale::kF32);
  EXPECT_EQ(NarrowestExactScale({1.0f + 0x1p-10f, 0x1p-30f}, {}), GemmScale::kF32);  // one for each, none for both
  EXPECT_EQ(NarrowestExactScale({std::numeric_limits<float>::quiet_NaN()}, {}), GemmScale::kF32);
}

TEST(GemmWeightFamily, FollowsBitsAndType) {
  EXPECT_EQ(GemmWeightFamily(16), GemmWeight::kBf16);
  EXPECT_EQ(GemmWeightFamily(8), GemmWeight::kW8Grouped);
  EXPECT_EQ(GemmWeightFamily(4), GemmWeight::kW4Grouped);
  EXPECT_EQ(GemmWeightFamily(8, QuantizationType::kFloat), GemmWeight::kF8Grouped);
  EXPECT_EQ(GemmWeightFamily(QuantizedTensor{.bits = 8, .type = QuantizationType::kFloat}), GemmWeight::kF8Grouped);
}

// The path of a loaded tensor through every row its family has, against DequantizeRow.
TEST(DescribeGemm, ALoadedTensorRunsOnEveryKernelOfItsFamily) {
  for (const int bits : {3, 4, 5, 8}) {
    for (const int offset : {0, 1, 2, 3}) {  // 3: scales and mins of integers and units
      QuantizedTensor weight{.out = 21, .in = 64, .bits = bits, .group_size = 16};
      RandomStream random(static_cast<uint64_t>(10 * bits + offset));
      for (int i = 0; i < 21 * 64; ++i) weight.code.push_back(static_cast<uint8_t>(random.Below(uint64_t{1} << bits)));
      for (int i = 0; i < 21 * 2 && offset == 3; ++i) {
        weight.unit_size = 32;
        weight.scale_unit.push_back(i % 7 == 0 ? 0.0f : ToFloat(ToFloat16(random.Normal())));
        weight.min_unit.push_back(ToFloat(ToFloat16(random.Normal())));
      }
      for (int i = 0; i < 21 * 4; ++i) {
        const auto times = [&](float unit) { return (static_cast<float>(random.Below(256)) - 128.0f) * unit; };
        weight.scale.push_back(offset == 3 ? times(weight.scale_unit[i / 2]) : ToFloat(ToFloat16(random.Normal())));
        if (offset == 3) weight.min.push_back(times(weight.min_unit[i / 2]));
        if (offset == 1) weight.zero_point.push_back(static_cast<uint8_t>(random.Below(uint64_t{1} << bits)));
        if (offset == 2) weight.min.push_back(random.Normal());  // needs f32
      }
      const GemmProblem problem = DescribeGemm(weight);
      EXPECT_EQ(problem.scale, offset == 3 ? GemmScale::kI8 : offset == 2 ? GemmScale::kF32 : GemmScale::kF16);
      std::vector<uint16_t> activation;
      for (int k = 0; k < 64; ++k) activation.push_back(ToBfloat16(random.Normal()).bits);
      for (const GemmKernelEntry* kernel : AllGemmKernels()) {
        if (kernel->weight != GemmWeightFamily(weight) || kernel->activation != GemmActivation::kBf16 || !RunsHere(kernel->isa)) continue;
        ASSERT_EQ(kernel->can_implement(problem), nullptr) << kernel->name;
        AlignedBuffer packed(kernel->prepack_bytes(problem));
        GemmPrepackParams prepack = DescribePrepack(weight, problem);
        prepack.out = packed.data();
        kernel->prepack(prepack);
        std::vector<float> out(21), row(64);
        kernel->run({.problem = problem,
                     .weight = packed.data(),
                     .activation = activation.data(),
                     .activation_stride = 64,
                     .m = 1,
                     .out = out.data(),
                     .out_stride = 21,
                     .panel_end = 2});
        for (int n = 0; n < 21; ++n) {
          weight.DequantizeRow(n, absl::MakeSpan(row));
          std::vector<float> read(64);
          kernel->read_row(problem, packed.data(), n, read.data());
          EXPECT_EQ(read, row) << kernel->name << ", bits " << bits << ", offset " << offset << ", column " << n;
          double expected = 0, norm = 0;
          for (int k = 0; k < 64; ++k) {
            expected += static_cast<double>(ToFloat(bfloat16{activation[k]})) * row[k];
            norm += std::abs(static_cast<double>(ToFloat(bfloat16{activation[k]}))) *
                    (std::abs(row[k]) + std::abs(weight.scale[n * 4 + k / 16]) * (1 << bits));
          }
          EXPECT_NEAR(out[n], expected, 1e-6 * norm) << kernel->name << ", bits " << bits << ", offset " << offset << ", column " << n;
        }
      }
    }
  }
}

}  // namespace
}  // namespace pith
