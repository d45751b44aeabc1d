#include "nn/rms_norm.h"

#include "base/status.h"
#include "nn/dense_weight.h"

namespace pith {

absl::StatusOr<RmsNorm> RmsNorm::Load(absl::string_view tensor_name, const TensorView& weight, int64_t dim, float eps, bool plus_one) {
  RmsNorm norm;
  ASSIGN_OR_RETURN(norm.weight_, ReadVector(tensor_name, weight, dim));
  norm.eps_ = eps;
  if (plus_one) {
    for (float& w : norm.weight_) w += 1.0f;
  }
  return norm;
}

void RmsNorm::Run(const ComputeContext& context, const float* x, int64_t x_stride, int64_t rows, LinearInput& out, int64_t row) const {
  context.ForRows(rows, dim(), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const absl::Span<float> normed = RowScratch(dim());  // stays in L1 until it is stored
      context.operators.rms_norm({.x = x + r * x_stride,
                                  .x_stride = x_stride,
                                  .weight = weight_.data(),
                                  .eps = eps_,
                                  .num_rows = 1,
                                  .dim = dim(),
                                  .out_f32 = normed.data(),
                                  .out_stride = dim()});
      out.Store(context, row + r, 1, normed.data(), dim());
    }
  });
}

void RmsNorm::RunAccumulate(const ComputeContext& context, const float* x, int64_t rows, int64_t stride, float* out) const {
  context.ForRows(rows, dim(), [&](int64_t begin, int64_t end) {
    context.operators.rms_norm({.x = x + begin * stride,
                                .x_stride = stride,
                                .weight = weight_.data(),
                                .eps = eps_,
                                .num_rows = end - begin,
                                .dim = dim(),
                                .out_f32 = out + begin * stride,
                                .out_stride = stride,
                                .accumulate = true});
  });
}

void RmsNorm::RunHeads(const ComputeContext& context, float* x, int64_t num_heads) const {
  context.operators.rms_norm({.x = x,
                              .x_stride = dim(),
                              .weight = weight_.data(),
                              .eps = eps_,
                              .num_rows = num_heads,
                              .dim = dim(),
                              .out_f32 = x,
                              .out_stride = dim()});
}

}  // namespace pith
