// Qwen3 (dense): RMSNorm on every query and key head, a head_dim of its own.
#include "base/status.h"
#include "model/architectures/architecture.h"
#include "model/architectures/qwen_windows.h"
#include "model/config_fields.h"

namespace pith {

absl::StatusOr<DecoderConfig> ParseQwen3Config(const Json& config) {
  DecoderConfig out;
  RETURN_IF_ERROR(ParseSizes(WithDefaults(config, {{"head_dim", 128}}), out));
  RETURN_IF_ERROR(RequireString(config, "hidden_act", "silu"));
  RETURN_IF_ERROR(ParseRope(config, std::nullopt, out));
  RETURN_IF_ERROR(ParseQwenWindows(config, out));
  ASSIGN_OR_RETURN(out.qkv_bias, GetBool(config, "attention_bias", false));
  out.o_bias = out.qkv_bias;
  out.qk_norm = true;
  return out;
}

}  // namespace pith
