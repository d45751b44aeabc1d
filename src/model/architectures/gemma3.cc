// Gemma 3: five sliding-window layers for each full-attention one, each kind with its own RoPE; norms before and after both halves of a
// layer, weights stored minus one; query and key norms; embeddings scaled by sqrt(hidden_size), rounded to bf16 as in training.
#include <cmath>

#include "base/float_types.h"
#include "base/status.h"
#include "model/architectures/architecture.h"
#include "model/config_fields.h"

namespace pith {
namespace {

// Published text configs leave out what equals the default of the reference class.
Json Gemma3Defaults() {
  return {{"vocab_size", 262208},
          {"hidden_size", 2304},
          {"intermediate_size", 9216},
          {"num_hidden_layers", 26},
          {"num_attention_heads", 8},
          {"num_key_value_heads", 4},
          {"head_dim", 256},
          {"max_position_embeddings", 131072},
          {"query_pre_attn_scalar", 256},
          {"sliding_window", 4096},
          {"tie_word_embeddings", true},
          {"rope_theta", 1000000.0},
          {"rope_local_base_freq", 10000.0},
          {"sliding_window_pattern", 6}};
}

bool IsSliding(const Json& config, int64_t layer) { return (layer + 1) % config["sliding_window_pattern"].get<int64_t>() != 0; }

}  // namespace

absl::StatusOr<DecoderConfig> ParseGemma3TextConfig(const Json& partial) {
  const Json config = WithDefaults(partial, Gemma3Defaults());
  DecoderConfig out;
  RETURN_IF_ERROR(ParseSizes(config, out));
  RETURN_IF_ERROR(RequireString(config, "hidden_activation", "gelu_pytorch_tanh"));
  RETURN_IF_ERROR(RequireNull(config, "final_logit_softcapping"));
  RETURN_IF_ERROR(RequireNull(config, "attn_logit_softcapping"));
  RETURN_IF_ERROR(RequireFalse(config, "use_bidirectional_attention"));
  ASSIGN_OR_RETURN(const double local_theta, GetDouble(config, "rope_local_base_freq", 2.0, 1e15));
  RETURN_IF_ERROR(ParseRope(config, local_theta, out));
  ASSIGN_OR_RETURN(const int64_t window, GetInt(config, "sliding_window", 1, int64_t{1} << 24));
  RETURN_IF_ERROR(GetInt(config, "sliding_window_pattern", 1, 512).status());
  RETURN_IF_ERROR(ParseLayerTypes(config, window, IsSliding, out));
  ASSIGN_OR_RETURN(const double scalar, GetDouble(config, "query_pre_attn_scalar", 1e-3, 1e6));
  ASSIGN_OR_RETURN(out.qkv_bias, GetBool(config, "attention_bias", false));
  out.o_bias = out.qkv_bias;
  out.attention_scale = static_cast<float>(1.0 / std::sqrt(scalar));
  out.activation = Activation::kGeluTanh;
  out.qk_norm = true;
  out.norm_weight_plus_one = true;
  out.post_norms = true;
  out.embedding_scale = RoundToBfloat16(std::sqrt(static_cast<float>(out.hidden_size)));
  return out;
}

absl::StatusOr<DecoderConfig> ParseGemma3Config(const Json& config) {
  const Json* text = FindMember(config, "text_config");
  if (text == nullptr || !text->is_object()) return BadFileError("text_config: expected an object, found none");
  Json inherited = Json::object();
  if (const Json* tie = FindMember(config, "tie_word_embeddings")) inherited["tie_word_embeddings"] = *tie;
  absl::StatusOr<DecoderConfig> parsed = ParseGemma3TextConfig(WithDefaults(*text, inherited));
  if (!parsed.ok()) return Annotate(parsed.status(), "text_config");
  return parsed;
}

}  // namespace pith
