#include "nn/lm_head.h"

namespace pith {

void LmHead::Normalize(const ComputeContext& context, const float* hidden, absl::Span<const int32_t> rows, uint16_t* out) const {
  const int64_t dim = norm_.dim();
  for (size_t i = 0; i < rows.size();) {
    // Runs of consecutive rows (a prompt scored whole) go to the pool together.
    size_t end = i + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    norm_.Run(context, hidden + rows[i] * dim, dim, static_cast<int64_t>(end - i), out + static_cast<int64_t>(i) * dim);
    i = end;
  }
}

void LmHead::Run(const ComputeContext& context, const uint16_t* normalized, int64_t m, float* logits) const {
  projection_.Run(context, normalized, projection_.in(), m, logits, projection_.out());
}

}  // namespace pith
