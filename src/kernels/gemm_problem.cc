#include "kernels/gemm_problem.h"

#include <bit>

#include "base/float_types.h"

namespace pith {
namespace {

// Bits are compared, so that a negative zero counts as a value of its own and a NaN payload does too.
bool SameBits(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

}  // namespace

GemmScale NarrowestExactScale(absl::Span<const float> scale, absl::Span<const float> min) {
  bool f16 = true, bf16 = true;
  for (const absl::Span<const float> values : {scale, min}) {
    for (const float x : values) {
      f16 = f16 && x == x && SameBits(ToFloat(ToFloat16(x)), x);
      bf16 = bf16 && x == x && SameBits(RoundToBfloat16(x), x);
      if (!f16 && !bf16) return GemmScale::kF32;
    }
  }
  return f16 ? GemmScale::kF16 : GemmScale::kBf16;
}

GemmProblem DescribeGemm(const QuantizedTensor& weight) {
  const bool units = !weight.scale_unit.empty();
  return {.n = weight.out,
          .k = weight.in,
          .group_size = weight.group_size,
          .bits = weight.bits,
          .has_zero_point = !weight.zero_point.empty(),
          .has_min = !weight.min.empty(),
          .scale = units ? GemmScale::kI8 : NarrowestExactScale(weight.scale, weight.min),
          .unit_size = units ? weight.unit_size : 0};
}

GemmWeight GemmWeightFamily(int bits, QuantizationType type) {
  if (type == QuantizationType::kFloat && bits == 8) return GemmWeight::kF8Grouped;
  return bits == 16 ? GemmWeight::kBf16 : bits <= 4 ? GemmWeight::kW4Grouped : GemmWeight::kW8Grouped;
}

GemmPrepackParams DescribePrepack(const QuantizedTensor& weight, const GemmProblem& problem) {
  return {.problem = problem,
          .code = weight.code.data(),
          .scale = weight.scale.data(),
          .zero_point = weight.zero_point.empty() ? nullptr : weight.zero_point.data(),
          .min = weight.min.empty() ? nullptr : weight.min.data(),
          .scale_unit = weight.scale_unit.empty() ? nullptr : weight.scale_unit.data(),
          .min_unit = weight.min_unit.empty() ? nullptr : weight.min_unit.data(),
          .panel_end = (weight.out + kGemmPanel - 1) / kGemmPanel};
}

}  // namespace pith
