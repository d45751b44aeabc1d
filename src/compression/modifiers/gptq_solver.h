// GPTQ: codes of a weight matrix that minimize the error of the layer's output rather than that of the weights, column by column, each
// column's error being made up for by the columns that are still to be coded. Pure functions of matrices; docs/methods/gptq.md.
//
// With P the order of coding, H + d I = R R^T in that order (R upper triangular) and A = R diag(R)^-1, row w of the weights becomes
//   w'_k = w_k + sum over j before k of (w_j - q_j) A_jk,   q_k = scale (clamp(round(w'_k / scale + zero)) - zero)
// and its loss in the damped Hessian is sum (w'_k - q_k)^2 R_kk^2. These are the columns of the paper's algorithm without its inverse:
// R^-1 is the Cholesky factor of (H + d I)^-1 that the paper computes in three steps, and the error feedback over all of them is A.
// Source: Frantar et al. 2022 (arXiv 2210.17323), Algorithm 1; this form of it: Chee et al. 2023 (arXiv 2307.13304), Theorem 6 (LDLQ).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/thread_pool.h"
#include "compression/modifiers/hessian.h"
#include "quantization/qparams.h"
#include "quantization/quantization_args.h"
#include "quantization/quantized_tensor.h"
#include "tensor/tensor.h"

namespace pith {

struct GptqOptions {
  double damping = 0.01;          // d as a share of the mean of diag H over columns that are not dead, >= 0; raised until the factors hold
  bool activation_order = true;   // columns with the largest H_ii first, ties by index; else from left to right
  bool zero_dead_columns = true;  // weights of columns whose input was always 0 become 0, as in the source; else they are rounded
  ClipSearch clip_search;         // of the scales, all of which are fixed before coding
  bool weighted_search = true;    // the search weighs a column's errors by H_ii
  bool refit_scales = false;      // RefitScales after coding (scale_refit.h)
};

// What GPTQ needs of a Hessian, made once for all layers that share an input. Read only after it is made.
struct GptqFactors {
  MatrixView<const float> hessian;  // [in, in], borrowed
  std::vector<int32_t> order;       // order[k]: the column that is coded k-th
  std::vector<float> diagonal;      // [in] of the hessian
  std::vector<float> pivot;         // [in] R_kk^2 in the order of coding
  Tensor feedback;                  // [in, in] f32: A above its diagonal, in the order of coding; the rest is not used
  double damping = 0;               // share of the mean of the diagonal that was needed
  double damping_term = 0;          // d itself
  int64_t dead_columns = 0;         // with H_ii = 0
};

// Factorizes H + d I, in f64. d begins at options.damping and is raised (x 2, from at least 0.001) while the Cholesky factorization fails
// or a pivot is below 1e-6 of the diagonal's mean, which f32 cannot tell from 0. A rank far below `in` (few calibration rows) is fine.
// The diagonal of a dead column counts as the mean, so that it takes part in nothing.
//   hessian  [in, in] f32, symmetric; borrowed by the result
// Same bits for any number of threads. O(in^3 / 3) time, 12 in^2 bytes at the peak, 4 in^2 in the result.
// Errors: those of CheckHessian; kInvalidArgument for a damping that is not in [0, 1]; kFailedPrecondition when every column is dead, or
// the matrix is so indefinite that a damping of 1 does not help.
absl::StatusOr<GptqFactors> FactorizeHessian(MatrixView<const float> hessian, const GptqOptions& options, ThreadPool& pool);

struct GptqResult {
  QuantizedTensor weight;
  double loss = 0;            // tr((W - Q) H (W - Q)^T), without damping; W with zeros in dead columns where these are asked for
  double rtn_loss = 0;        // the same of codes rounded to nearest with the scales GPTQ began with
  double damping = 0;         // as in GptqFactors
  int64_t dead_columns = 0;   // as in GptqFactors
  int64_t rtn_rows = 0;       // rows that keep the nearest codes, because GPTQ's have a larger loss: the feedback is greedy
  int64_t refitted_rows = 0;  // rows whose scales RefitScales changed
};

// Quantizes weight [out, in] to 2..8 bit integer codes per group, channel or tensor, symmetric or not. Scales and zero points come from the
// original weights (QuantizeWeight with options.clip_search) and are fixed in their stored dtype before anything is coded, so groups stay
// contiguous columns whatever the order of coding. No row has a larger loss than rounding to nearest with the same scales gives it.
// Same bits for any number of threads: rows are shared out over `pool`. O(out in^2) time; 1 MiB per thread and 1000 columns.
// Errors: those of QuantizeWeight; kInvalidArgument when `factors` are of another width; kUnimplemented for float codes.
absl::StatusOr<GptqResult> SolveGptq(MatrixView<const float> weight, const GptqFactors& factors, const QuantizationArgs& args,
                                     DType scale_dtype, const GptqOptions& options, ThreadPool& pool);

// Both steps, for a Hessian of one layer.
absl::StatusOr<GptqResult> SolveGptq(MatrixView<const float> weight, MatrixView<const float> hessian, const QuantizationArgs& args,
                                     DType scale_dtype, const GptqOptions& options, ThreadPool& pool);

}  // namespace pith
