// Draws from the softmax of a row of logits by inverting its distribution function: one uniform number for a draw, where Gumbel-max
// (sampler.h) takes one for every token. Several times as fast over a large vocabulary, but with nothing for a drafter to share; for text
// that nobody speculates about. Pure and thread-safe.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace pith {

// The first token whose cumulative probability, ids ascending, passes `uniform`, in (0, 1); probabilities are right to 5e-6 of each. Tokens
// of NaN, -infinity, or less than 1e-37 times the largest probability are never drawn. -1 when the largest logit is not finite.
int32_t DrawByInversion(absl::Span<const float> logits, double uniform);

}  // namespace pith
