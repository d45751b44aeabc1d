// SmoothQuant: scales of the input channels that move the size of outlier channels from activations, where every token has one int8 scale
// for all channels, into weights. W s is stored and x / s is fed (the caller folds 1 / s into what makes x). A pure function of matrices;
// docs/methods/smoothquant.md.
//
//   s = max(max|x|^alpha / max|w|^(1-alpha), 1e-5), max|w| over the rows of all layers that share the input
//   error = mean over the tokens x of ||x W^T - A(x / s) Q(W s)^T||^2 / ||x W^T||^2, all layers that share the input side by side,
//           with A int8 per token as the kernels do it and Q int8 per channel
// Every token counts as much as any other: the first token of a text, whose outputs can be a thousand times as large as the others',
// would decide alone otherwise, at the cost of all that have a scale of their own.
// Source: Xiao et al. 2022 (arXiv 2211.10438), equation 4; its code `smooth_ln_fcs`.
// Deviations: alpha may be searched per set of layers, and then no smoothing (s = 1) is a candidate too; a channel whose input or weights
// are all 0 keeps s = 1, where the source has a bound of 1e-5.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/thread_pool.h"
#include "quantization/qparams.h"
#include "quantization/quantization_args.h"
#include "tensor/tensor.h"

namespace pith {

struct SmoothQuantOptions {
  std::optional<double> alpha;                                           // in [0, 1]; else searched
  int grid = 20;                                                         // >= 1: alpha = 0, 1/grid, ..., 1 are tried
  QuantizationArgs args = {.strategy = QuantizationStrategy::kChannel};  // of the weights
  ClipSearch clip_search = kNoClipSearch;                                // of the weights
  DType scale_dtype = DType::kBF16;
  std::vector<int32_t> tied_columns;  // CheckTiedColumns; their scale is from the largest of their inputs and weights
};

// One candidate of the search.
struct SmoothQuantPoint {
  bool identity = false;  // s = 1; `alpha` is 0 then
  double alpha = 0;
  double error = 0;
};

struct SmoothQuantResult {
  std::vector<float> scales;            // [in], > 0, finite
  SmoothQuantPoint best;                // the first of equals; with a given alpha: that one
  std::vector<SmoothQuantPoint> curve;  // without smoothing, then alpha ascending; with a given alpha: without smoothing and that one
};

// s as above; both have `in` entries, finite and >= 0.
std::vector<float> SmoothingScales(absl::Span<const float> max_abs_input, absl::Span<const float> max_abs_weight, double alpha);

// max|w| per column of layers [out_i, in] that share an input.
std::vector<float> MaxAbsColumns(absl::Span<const MatrixView<const float>> weights);

//   max_abs_input  [in] max of |x| over the calibration rows
//   weights        one or more, [out_i, in] each
//   rows           [n, in] sample of the input, for the error; none: then alpha must be given, and errors are 0
// Same bits for any number of threads. Time: (grid + 2) (sum of out_i) (n in + what QuantizeWeight takes). Memory: the largest weight
// twice, the rows and the outputs. Errors: kInvalidArgument for shapes that do not fit, an alpha outside [0, 1], a grid below 1, neither
// alpha nor rows, a maximum that is negative or not finite; kDataLoss for a row that is not finite; those of QuantizeWeight.
absl::StatusOr<SmoothQuantResult> SolveSmoothQuant(absl::Span<const float> max_abs_input, absl::Span<const MatrixView<const float>> weights,
                                                   MatrixView<const float> rows, const SmoothQuantOptions& options, ThreadPool& pool);

}  // namespace pith
