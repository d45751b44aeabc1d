// Round-to-nearest quantization of a weight matrix, per tensor, channel, group or block, with an optional search for the best clipping.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/thread_pool.h"
#include "quantization/qparams.h"
#include "quantization/quantization_args.h"
#include "quantization/quantized_tensor.h"
#include "tensor/tensor.h"

namespace pith {

// Quantizes weight [out, in] to args.num_bits (2..8) integer codes or to e4m3fn codes (without a search); scales are rounded to
// `scale_dtype` (BF16, F16 or F32) first. The result has a scale per row and group whatever the strategy (that of a tensor or block
// repeated), zero points only when asymmetric, and an empty `format`: EncodeWeight stores it. Same bits for any number of threads; rows are
// shared out over `pool`. `importance` is empty or has a number >= 0 per column, E[x^2] of the layer's input up to a common factor: the
// search then minimizes sum importance |w - dequantized|^norm (qparams.h). Errors: kInvalidArgument for args that Validate refuses, an
// empty matrix, a group size that does not divide `in`, scales beyond `scale_dtype` or another importance; kUnimplemented for 1-bit codes,
// dynamic scales, integer codes per block, or rows that end within a block; kDataLoss for a NaN or infinite weight, with the first such
// index.
absl::StatusOr<QuantizedTensor> QuantizeWeight(MatrixView<const float> weight, const QuantizationArgs& args, DType scale_dtype,
                                               const ClipSearch& search, ThreadPool& pool, absl::Span<const float> importance = {});

}  // namespace pith
