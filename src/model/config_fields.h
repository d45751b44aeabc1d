// What the config.json of all decoder architectures has in common: ranges of the sizes, RoPE parameters, layer types, refusals.
// Every value is bounded before anything is computed or allocated from it. Errors: kDataLoss for missing, mistyped or absurd values,
// kUnimplemented for values that mean something we do not run; both name the field, the expectation and the finding.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json.h"
#include "model/decoder_config.h"

namespace pith {

// `config` with the members of `defaults` wherever it has none (or null).
Json WithDefaults(const Json& config, const Json& defaults);

// model sizes, rms_norm_eps, max_position_embeddings, tie_word_embeddings; attention_scale as 1 / sqrt(head_dim); layer_window all 0.
// head_dim defaults to hidden_size / num_attention_heads, num_key_value_heads to num_attention_heads.
absl::Status ParseSizes(const Json& config, DecoderConfig& out);

// rope and rope_local from "rope_scaling" or "rope_parameters" (flat, or one object per layer type) and "rope_theta". Without
// parameters of their own, sliding-window layers use those of full attention, or plain RoPE with `local_theta` when given.
absl::Status ParseRope(const Json& config, std::optional<double> local_theta, DecoderConfig& out);

// layer_window from "layer_types" when present, else window for the layers `is_sliding` names. window 0: there is none.
absl::Status ParseLayerTypes(const Json& config, int64_t window, bool (*is_sliding)(const Json& config, int64_t layer), DecoderConfig& out);

// kUnimplemented unless the field is absent or null or holds the one value we run.
absl::Status RequireString(const Json& config, absl::string_view key, absl::string_view expected);
absl::Status RequireNull(const Json& config, absl::string_view key);
absl::Status RequireFalse(const Json& config, absl::string_view key);

}  // namespace pith
