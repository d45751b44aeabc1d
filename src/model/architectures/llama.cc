// Llama 1 to 3.x and what shares its config (SmolLM, SmolLM2, TinyLlama, ...).
#include "base/status.h"
#include "model/architectures/architecture.h"
#include "model/config_fields.h"

namespace pith {

absl::StatusOr<DecoderConfig> ParseLlamaConfig(const Json& config) {
  DecoderConfig out;
  RETURN_IF_ERROR(ParseSizes(config, out));
  RETURN_IF_ERROR(RequireString(config, "hidden_act", "silu"));
  RETURN_IF_ERROR(ParseRope(config, std::nullopt, out));
  ASSIGN_OR_RETURN(out.qkv_bias, GetBool(config, "attention_bias", false));
  out.o_bias = out.qkv_bias;
  ASSIGN_OR_RETURN(out.mlp_bias, GetBool(config, "mlp_bias", false));
  return out;
}

}  // namespace pith
