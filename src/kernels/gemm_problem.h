// From a loaded weight matrix to the GEMM problem a kernel is selected and prepacked for.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "kernels/gemm.h"
#include "kernels/kernel_entry.h"
#include "quantization/quantization_args.h"
#include "quantization/quantized_tensor.h"

namespace pith {

// The narrowest type that holds every scale and min exactly: 2 bytes instead of 4 wherever the container stored 16-bit scales.
// f16 is preferred to bf16. Not-a-number values need f32. `min` may be empty.
GemmScale NarrowestExactScale(absl::Span<const float> scale, absl::Span<const float> min);

// n, k, group size, bits, offsets and scale type of a quantized matrix, and the weight family that consumes it.
GemmProblem DescribeGemm(const QuantizedTensor& weight);
GemmWeight GemmWeightFamily(int bits, QuantizationType type = QuantizationType::kInt);  // 16 bits: dense
inline GemmWeight GemmWeightFamily(const QuantizedTensor& weight) { return GemmWeightFamily(weight.bits, weight.type); }

// Dense bf16 [n, k].
inline GemmProblem DescribeDenseGemm(int64_t n, int64_t k) { return {.n = n, .k = k}; }

// Prepack parameters of all panels of `weight`, which must outlive their use; the caller sets `out` and may narrow the panel range.
GemmPrepackParams DescribePrepack(const QuantizedTensor& weight, const GemmProblem& problem);

}  // namespace pith
