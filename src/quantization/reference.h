// Scalar reference of integer quantization, one value at a time and without tricks, and the error a quantized weight makes.
// The oracle of qparams.h and of kernels. All functions are pure and thread-safe.
#pragma once

#include "absl/types/span.h"
#include "quantization/qparams.h"
#include "quantization/quantization_args.h"
#include "quantization/quantized_tensor.h"
#include "tensor/tensor.h"

namespace pith {

// Signed code of a value: clamp(round(value / scale + zero_point), min_code, max_code), ties to even.
int QuantizeValue(float value, const QParams& qparams, const QuantizationArgs& args);
// (code - zero_point) * scale.
float DequantizeValue(int code, const QParams& qparams);

// How far an approximation is from the original.
struct ErrorStatistics {
  double relative_error = 0;  // ||approximation - original|| / ||original||; 0 when both are zero, infinite when only the original is
  double sqnr_db = 0;         // signal to quantization noise, -20 log10(relative_error); infinite when exact
  double max_abs_error = 0;
};

// Both of the same length.
ErrorStatistics CompareValues(absl::Span<const float> original, absl::Span<const float> approximation);

// Of the dequantized weight, row by row. Shapes must be equal.
ErrorStatistics CompareWeights(MatrixView<const float> original, const QuantizedTensor& quantized);

}  // namespace pith
