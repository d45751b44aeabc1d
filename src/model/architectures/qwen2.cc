// Qwen2 and Qwen2.5: biases on q, k and v only; optionally a sliding window from layer max_window_layers on.
#include "base/status.h"
#include "model/architectures/architecture.h"
#include "model/architectures/qwen_windows.h"
#include "model/config_fields.h"

namespace pith {

absl::StatusOr<DecoderConfig> ParseQwen2Config(const Json& config) {
  DecoderConfig out;
  RETURN_IF_ERROR(ParseSizes(config, out));
  RETURN_IF_ERROR(RequireString(config, "hidden_act", "silu"));
  RETURN_IF_ERROR(ParseRope(config, std::nullopt, out));
  RETURN_IF_ERROR(ParseQwenWindows(config, out));
  out.qkv_bias = true;
  return out;
}

}  // namespace pith
