// How far what a model serves is from what its reference serves: the distributions from which the sampler draws, after temperature, min-p,
// top-k and top-p, by the sampler's own code.
//
// After cutting, the reference may keep a token that the model does not, and KL(reference || model) is then infinite; at a low temperature
// or a small top-p this is the rule. So KL is reported twice in finite forms, and the part that makes it infinite apart: `kl` before the
// cut, `kl_shared` among the tokens that both keep, and `lost_mass`. Total variation and Jensen-Shannon divergence exist always; they are
// the figures to compare across settings.
//
// Sources: Lin 1991 (Jensen-Shannon); total variation is the rate at which speculative sampling would reject the model's tokens as
// proposals (Leviathan et al. 2023, theorem 3.5).
#pragma once

#include "absl/types/span.h"
#include "sampling/logits_processor.h"
#include "sampling/sampling_params.h"

namespace pith {

// Of one position. Divergences in nats.
struct ServedComparison {
  double kl = 0;               // KL(reference || model) at the temperature, of all tokens; 0 for greedy decoding, where it has no meaning
  double kl_shared = 0;        // KL of both, cut and renormalized to the tokens that both keep; 0 when there are none
  double jensen_shannon = 0;   // of what is served, in [0, log 2]
  double total_variation = 0;  // of what is served, in [0, 1]: half the sum of |p - q|
  double lost_mass = 0;        // the reference serves tokens with this probability that the model never serves
  double added_mass = 0;       // the model serves tokens with this probability that the reference never serves
};

// Buffers reused from call to call.
struct ServedScratch {
  SamplerScratch reference, model;
};

// Both rows [vocab_size], finite. Of params only temperature, min_p, top_k and top_p count. Equal rows give exactly 0. Sums in f64 in
// ascending order of ids. Thread-safe with one scratch per thread.
ServedComparison CompareServed(absl::Span<const float> reference, absl::Span<const float> model, const SamplingParams& params,
                               ServedScratch& scratch);

}  // namespace pith
