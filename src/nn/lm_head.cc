#include "nn/lm_head.h"

namespace pith {

void LmHead::Normalize(const ComputeContext& context, const float* hidden, absl::Span<const int32_t> rows, LinearInput& out) const {
  const int64_t dim = norm_.dim();
  for (size_t i = 0; i < rows.size();) {
    // Runs of consecutive rows (a prompt scored whole) go to the pool together.
    size_t end = i + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    norm_.Run(context, hidden + rows[i] * dim, dim, static_cast<int64_t>(end - i), out, static_cast<int64_t>(i));
    i = end;
  }
}

void LmHead::Run(const ComputeContext& context, const LinearInput& normalized, int64_t m, float* logits) const {
  projection_->Run(context, normalized, 0, m, logits, projection_->out());
}

}  // namespace pith
