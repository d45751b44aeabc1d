// How far one next-token distribution is from another: pure functions of two rows of logits.
// Source: Kullback & Leibler 1951; the set of figures is llama-perplexity's --kl-divergence.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace pith {

// Of one scored position.
struct TokenComparison {
  double kl = 0;             // KL(reference || model) in nats: sum p_ref (log p_ref - log p_model)
  double nll_reference = 0;  // -log p of the token that follows
  double nll_model = 0;
  double delta_p = 0;                        // p_model - p_ref of the reference's most likely token
  bool same_top = false;                     // both have the same most likely token (ties: lower id)
  int32_t reference_top = 0, model_top = 0;  // these tokens
};

// Both rows [vocab_size], finite. Equal rows give kl exactly 0. Sums in f64, in ascending order of ids. Thread-safe.
TokenComparison CompareLogits(absl::Span<const float> reference, absl::Span<const float> model, int32_t next_token);

}  // namespace pith
