#include "model/config_fields.h"

#include <cmath>

#include "base/status.h"

namespace pith {
namespace {

constexpr int64_t kMaxVocab = int64_t{1} << 24, kMaxHidden = 65536, kMaxIntermediate = int64_t{1} << 20;
constexpr int64_t kMaxLayers = 512, kMaxHeads = 1024, kMaxHeadDim = 1024, kMaxPositions = int64_t{1} << 24;

// YaRN's attention temperature: 0.1 * mscale * ln(scale) + 1.
double YarnMscale(double scale, double mscale) { return scale <= 1.0 ? 1.0 : 0.1 * mscale * std::log(scale) + 1.0; }

absl::Status ParseYarn(const Json& parameters, int64_t max_position, RopeConfig& rope) {
  ASSIGN_OR_RETURN(rope.original_max_position, GetInt(parameters, "original_max_position_embeddings", 1, kMaxPositions, max_position));
  const double extension = static_cast<double>(max_position) / static_cast<double>(rope.original_max_position);
  ASSIGN_OR_RETURN(rope.factor, GetDouble(parameters, "factor", 1.0, 1e6, extension));
  ASSIGN_OR_RETURN(rope.beta_fast, GetDouble(parameters, "beta_fast", 1e-3, 1e6, 32.0));
  ASSIGN_OR_RETURN(rope.beta_slow, GetDouble(parameters, "beta_slow", 1e-3, 1e6, 1.0));
  ASSIGN_OR_RETURN(rope.truncate, GetBool(parameters, "truncate", true));
  ASSIGN_OR_RETURN(const double mscale, GetDouble(parameters, "mscale", 0.0, 100.0, 0.0));
  ASSIGN_OR_RETURN(const double mscale_all_dim, GetDouble(parameters, "mscale_all_dim", 0.0, 100.0, 0.0));
  const bool has_mscales = mscale != 0.0 && mscale_all_dim != 0.0;
  const double inferred = has_mscales ? YarnMscale(rope.factor, mscale) / YarnMscale(rope.factor, mscale_all_dim)
                                      : YarnMscale(rope.factor, 1.0);
  ASSIGN_OR_RETURN(rope.attention_factor, GetDouble(parameters, "attention_factor", 1e-3, 1e3, inferred));
  return absl::OkStatus();
}

absl::Status ParseLlama3(const Json& parameters, int64_t max_position, RopeConfig& rope) {
  ASSIGN_OR_RETURN(rope.factor, GetDouble(parameters, "factor", 1.0, 1e6));
  ASSIGN_OR_RETURN(rope.low_freq_factor, GetDouble(parameters, "low_freq_factor", 1e-3, 1e6));
  ASSIGN_OR_RETURN(rope.high_freq_factor, GetDouble(parameters, "high_freq_factor", 1e-3, 1e6));
  ASSIGN_OR_RETURN(rope.original_max_position, GetInt(parameters, "original_max_position_embeddings", 1, kMaxPositions, max_position));
  if (rope.high_freq_factor <= rope.low_freq_factor) {
    return BadFileError("high_freq_factor: expected more than low_freq_factor (", rope.low_freq_factor, "), found ", rope.high_freq_factor);
  }
  return absl::OkStatus();
}

absl::Status RequireFullRotation(const Json& json) {
  ASSIGN_OR_RETURN(const double partial, GetDouble(json, "partial_rotary_factor", 0.0, 1.0, 1.0));
  if (partial != 1.0) return NotSupportedError("partial_rotary_factor: expected 1, found ", partial);
  return absl::OkStatus();
}

// One object of RoPE parameters; `parameters` may be null (plain RoPE).
absl::StatusOr<RopeConfig> ParseRopeParameters(const Json& parameters, double theta, int64_t max_position) {
  RopeConfig rope;
  if (!parameters.is_null() && !parameters.is_object()) return BadFileError("expected an object, found ", DumpJson(parameters));
  ASSIGN_OR_RETURN(rope.theta, GetDouble(parameters, "rope_theta", 2.0, 1e15, theta));
  RETURN_IF_ERROR(RequireFullRotation(parameters));
  ASSIGN_OR_RETURN(const std::string old_type, GetString(parameters, "type", "default"));
  ASSIGN_OR_RETURN(const std::string type, GetString(parameters, "rope_type", old_type));
  if (type == "default") return rope;
  rope.scaling = type;
  if (type == "linear") {
    ASSIGN_OR_RETURN(rope.factor, GetDouble(parameters, "factor", 1.0, 1e6));
  } else if (type == "llama3") {
    RETURN_IF_ERROR(ParseLlama3(parameters, max_position, rope));
  } else if (type == "yarn") {
    RETURN_IF_ERROR(ParseYarn(parameters, max_position, rope));
  } else {
    return NotSupportedError("rope_type: expected default, linear, llama3 or yarn, found \"", Printable(type), "\"");
  }
  return rope;
}

}  // namespace

Json WithDefaults(const Json& config, const Json& defaults) {
  Json merged = defaults;
  for (const auto& [key, value] : config.items()) {
    if (!value.is_null()) merged[key] = value;
  }
  return merged;
}

absl::Status ParseSizes(const Json& config, DecoderConfig& out) {
  ASSIGN_OR_RETURN(out.vocab_size, GetInt(config, "vocab_size", 1, kMaxVocab));
  ASSIGN_OR_RETURN(out.hidden_size, GetInt(config, "hidden_size", 1, kMaxHidden));
  ASSIGN_OR_RETURN(out.intermediate_size, GetInt(config, "intermediate_size", 1, kMaxIntermediate));
  ASSIGN_OR_RETURN(out.num_layers, GetInt(config, "num_hidden_layers", 1, kMaxLayers));
  ASSIGN_OR_RETURN(out.num_heads, GetInt(config, "num_attention_heads", 1, kMaxHeads));
  ASSIGN_OR_RETURN(out.num_kv_heads, GetInt(config, "num_key_value_heads", 1, out.num_heads, out.num_heads));
  if (out.num_heads % out.num_kv_heads != 0) {
    return BadFileError("num_key_value_heads: expected a divisor of num_attention_heads (", out.num_heads, "), found ", out.num_kv_heads);
  }
  if (FindMember(config, "head_dim") == nullptr && out.hidden_size % out.num_heads != 0) {
    return BadFileError("head_dim: expected a value, since hidden_size ", out.hidden_size, " is no multiple of num_attention_heads ",
                        out.num_heads);
  }
  ASSIGN_OR_RETURN(out.head_dim, GetInt(config, "head_dim", 2, kMaxHeadDim, out.hidden_size / out.num_heads));
  if (out.head_dim < 2 || out.head_dim > kMaxHeadDim || out.head_dim % 2 != 0) {
    return BadFileError("head_dim: expected an even number in [2, ", kMaxHeadDim, "], found ", out.head_dim);
  }
  ASSIGN_OR_RETURN(out.max_position_embeddings, GetInt(config, "max_position_embeddings", 1, kMaxPositions));
  ASSIGN_OR_RETURN(const double eps, GetDouble(config, "rms_norm_eps", 1e-12, 0.1, 1e-6));
  out.rms_norm_eps = static_cast<float>(eps);
  ASSIGN_OR_RETURN(out.tie_word_embeddings, GetBool(config, "tie_word_embeddings", false));
  out.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(out.head_dim)));
  out.layer_window.assign(out.num_layers, 0);
  return absl::OkStatus();
}

absl::Status ParseRope(const Json& config, std::optional<double> local_theta, DecoderConfig& out) {
  ASSIGN_OR_RETURN(const double theta, GetDouble(config, "rope_theta", 2.0, 1e15, 10000.0));
  RETURN_IF_ERROR(RequireFullRotation(config));
  const char* key = FindMember(config, "rope_scaling") != nullptr ? "rope_scaling" : "rope_parameters";
  const Json* parameters = FindMember(config, key);
  const Json none = nullptr;
  const Json* full = parameters == nullptr ? &none : parameters;
  const Json* local = nullptr;
  if (parameters != nullptr && (FindMember(*parameters, "full_attention") || FindMember(*parameters, "sliding_attention"))) {
    const Json* nested = FindMember(*parameters, "full_attention");
    full = nested == nullptr ? &none : nested;
    local = FindMember(*parameters, "sliding_attention");
  }
  absl::StatusOr<RopeConfig> rope = ParseRopeParameters(*full, theta, out.max_position_embeddings);
  if (!rope.ok()) return Annotate(rope.status(), key);
  out.rope = out.rope_local = *std::move(rope);
  if (local == nullptr && !local_theta.has_value()) return absl::OkStatus();
  absl::StatusOr<RopeConfig> rope_local = ParseRopeParameters(local == nullptr ? none : *local, local_theta.value_or(theta),
                                                              out.max_position_embeddings);
  if (!rope_local.ok()) return Annotate(rope_local.status(), absl::StrCat(key, ".sliding_attention"));
  out.rope_local = *std::move(rope_local);
  return absl::OkStatus();
}

absl::Status ParseLayerTypes(const Json& config, int64_t window, bool (*is_sliding)(const Json& config, int64_t layer),
                             DecoderConfig& out) {
  const Json* types = FindMember(config, "layer_types");
  if (types != nullptr && (!types->is_array() || static_cast<int64_t>(types->size()) != out.num_layers)) {
    return BadFileError("layer_types: expected ", out.num_layers, " names, found ", Printable(DumpJson(*types)));
  }
  for (int64_t layer = 0; layer < out.num_layers; ++layer) {
    bool sliding = types == nullptr && window > 0 && is_sliding(config, layer);
    if (types != nullptr) {
      const Json& type = (*types)[layer];
      sliding = type == "sliding_attention";
      if (!sliding && type != "full_attention") {
        return NotSupportedError("layer_types[", layer, "]: expected \"full_attention\" or \"sliding_attention\", found ",
                                 Printable(DumpJson(type)));
      }
      if (sliding && window == 0) return BadFileError("layer_types[", layer, "]: expected \"full_attention\", as no sliding_window is set");
    }
    out.layer_window[layer] = sliding ? window : 0;
  }
  return absl::OkStatus();
}

absl::Status RequireString(const Json& config, absl::string_view key, absl::string_view expected) {
  const Json* value = FindMember(config, key);
  if (value == nullptr || *value == std::string(expected)) return absl::OkStatus();
  return NotSupportedError(key, ": expected \"", expected, "\", found ", Printable(DumpJson(*value)));
}

absl::Status RequireNull(const Json& config, absl::string_view key) {
  const Json* value = FindMember(config, key);
  if (value == nullptr) return absl::OkStatus();
  return NotSupportedError(key, ": expected null, found ", Printable(DumpJson(*value)));
}

absl::Status RequireFalse(const Json& config, absl::string_view key) {
  const Json* value = FindMember(config, key);
  if (value == nullptr || *value == false) return absl::OkStatus();
  return NotSupportedError(key, ": expected false, found ", Printable(DumpJson(*value)));
}

}  // namespace pith
