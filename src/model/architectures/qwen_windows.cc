#include "model/architectures/qwen_windows.h"

#include "base/status.h"
#include "model/config_fields.h"

namespace pith {

absl::Status ParseQwenWindows(const Json& config, DecoderConfig& out) {
  const Json with_defaults = WithDefaults(config, {{"sliding_window", 4096}, {"max_window_layers", 28}});
  ASSIGN_OR_RETURN(const bool use_window, GetBool(config, "use_sliding_window", false));
  RETURN_IF_ERROR(GetInt(with_defaults, "max_window_layers", 0, 1 << 20).status());
  int64_t window = 0;
  if (use_window) {
    ASSIGN_OR_RETURN(window, GetInt(with_defaults, "sliding_window", 1, int64_t{1} << 24));
  }
  const auto is_sliding = [](const Json& json, int64_t layer) { return layer >= json["max_window_layers"].get<int64_t>(); };
  return ParseLayerTypes(with_defaults, window, is_sliding, out);
}

}  // namespace pith
