// AWQ: scales of the input channels that make the weights of important channels easier to quantize. W s is stored instead of W and x / s is
// fed instead of x (the caller folds 1 / s into what makes x); s is searched for the smallest error of the output. A pure function of
// matrices; docs/methods/awq.md.
//
//   s(r) = max(mean|x|^r / (mean|w|^(1-r) + 1e-4), 1e-4), normalized by sqrt(max s * min s),  r = 0, 1/grid, ..., 1; and s = 1
// or, of the input alone, max(mean|x|^r, 1e-4), normalized likewise.
//   error = sum over the layers of ||X (W - Q(W s) / s)^T||^2 = tr(E G E^T) with G = X^T X
// mean|w| is over the rows of all layers together, of weights divided by the largest of their group.
// Source: Lin et al. 2023 (arXiv 2306.00978), section 3.2; AutoAWQ `_compute_best_scale`, llm-compressor `AWQModifier`.
// Deviations: the error is that of the linear layers and not of the whole block (no model here), and comes from the Gram matrix, so that it
// covers all calibration rows at a cost that does not depend on their number; r = 1 and s = 1 are tried too, so the result is never worse
// than no scaling; a channel that was always 0 keeps s = 1 (the source gives it the smallest scale of all); Q may search its clipping
// ranges, weighted by the importance that the scaled channels have.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/cpu_features.h"
#include "base/thread_pool.h"
#include "quantization/qparams.h"
#include "quantization/quantization_args.h"
#include "tensor/tensor.h"

namespace pith {

// What decides s(r): the input alone (as in the authors' own program), the weights too, or whichever does better.
enum class DuoScaling { kOff, kOn, kBoth };

struct AwqOptions {
  int grid = 20;  // >= 1; with kBoth half of it for each, as in llm-compressor
  DuoScaling duo_scaling = DuoScaling::kOn;
  ClipSearch clip_search = kNoClipSearch;  // of Q; the source uses whole ranges
  DType scale_dtype = DType::kBF16;        // of Q's scales
  Isa isa = Isa::kScalar;                  // one that this CPU has, for QuadraticFormMeter
  std::vector<int32_t> tied_columns;       // CheckTiedColumns; their scale is from the means of their statistics
};

// One candidate of the search.
struct AwqPoint {
  bool identity = false;  // s = 1; `ratio` is 0 then
  bool duo = false;       // s(r) of input and weights
  double ratio = 0;
  double error = 0;  // as above, in units of `gram`
};

struct AwqResult {
  std::vector<float> scales;    // [in], > 0, finite
  AwqPoint best;                // the first of equals; the identity is the first of all
  std::vector<AwqPoint> curve;  // all candidates: the identity, s(r) of the input alone by r > 0, then of both by r
};

// s(r) as above; both means have `in` entries, finite and >= 0. Without those of weights: of the input alone.
std::vector<float> AwqScales(absl::Span<const float> mean_abs_input, absl::Span<const float> mean_abs_weight, double ratio);

// mean|w| as above of layers [out_i, in] that share an input. `group_size` divides `in`.
std::vector<float> NormalizedWeightMeans(absl::Span<const MatrixView<const float>> weights, int64_t group_size);

//   mean_abs_input  [in] mean of |x|
//   weights         one or more, [out_i, in] each
//   gram            [in, in] symmetric: any positive multiple of X^T X, such as the Hessian of HessianAccumulator
//   args            of the weights; whatever QuantizeWeight takes
// Same bits for any number of threads. Time: (grid + 2) (sum of out_i) (in^2 + what QuantizeWeight takes). Memory: the largest weight
// twice, and what QuadraticFormMeter takes. Errors: kInvalidArgument for shapes that do not fit, a grid below 1, a mean that is negative or
// not finite or a tied column out of range; those of QuantizeWeight and CheckHessian.
absl::StatusOr<AwqResult> SearchAwqScales(absl::Span<const float> mean_abs_input, absl::Span<const MatrixView<const float>> weights,
                                          MatrixView<const float> gram, const QuantizationArgs& args, const AwqOptions& options,
                                          ThreadPool& pool);

}  // namespace pith
