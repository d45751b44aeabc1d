// The last step: final norm of the rows whose logits are wanted, then the projection onto the vocabulary.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "nn/compute_context.h"
#include "nn/linear.h"
#include "nn/rms_norm.h"

namespace pith {

class LmHead {
 public:
  LmHead() = default;
  LmHead(RmsNorm norm, std::shared_ptr<const Linear> projection) : norm_(std::move(norm)), projection_(std::move(projection)) {}

  int64_t vocab_size() const { return projection_->out(); }
  const Linear& projection() const { return *projection_; }

  // Gathers rows[i] of hidden [.., dim] f32 (contiguous rows) and normalizes them into row i of `out`, prepared for projection().
  void Normalize(const ComputeContext& context, const float* hidden, absl::Span<const int32_t> rows, LinearInput& out) const;
  // logits [m, vocab] f32 from normalized rows.
  void Run(const ComputeContext& context, const LinearInput& normalized, int64_t m, float* logits) const;

  int64_t resident_bytes() const { return norm_.resident_bytes() + projection_->resident_bytes(); }

 private:
  RmsNorm norm_;
  std::shared_ptr<const Linear> projection_;  // shared with a tied embedding
};

}  // namespace pith
