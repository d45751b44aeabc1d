// RMSNorm with its weight in f32. Formula and order of summation: kernels/normalization.h.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nn/compute_context.h"
#include "nn/linear_input.h"
#include "tensor/tensor.h"

namespace pith {

class RmsNorm {
 public:
  // plus_one: the architecture multiplies by 1 + weight (Gemma); folded in here, in f32. Errors: kDataLoss for a shape other than [dim]
  // and for NaN or infinities.
  static absl::StatusOr<RmsNorm> Load(absl::string_view tensor_name, const TensorView& weight, int64_t dim, float eps, bool plus_one);

  int64_t dim() const { return static_cast<int64_t>(weight_.size()); }
  int64_t resident_bytes() const { return dim() * static_cast<int64_t>(sizeof(float)); }

  // x [rows, dim] f32, rows x_stride floats apart -> rows [row, row + rows) of `out`, which was prepared for them.
  void Run(const ComputeContext& context, const float* x, int64_t x_stride, int64_t rows, LinearInput& out, int64_t row = 0) const;
  // out [rows, dim] += norm(x), both with rows `stride` floats apart (post-norms before a residual add).
  void RunAccumulate(const ComputeContext& context, const float* x, int64_t rows, int64_t stride, float* out) const;
  // Normalizes x [num_heads, dim] of one row in place (query and key norms). On the calling thread.
  void RunHeads(const ComputeContext& context, float* x, int64_t num_heads) const;

 private:
  std::vector<float> weight_;
  float eps_ = 0;
};

}  // namespace pith
