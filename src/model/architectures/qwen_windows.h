// Sliding windows as the Qwen configs write them.
#pragma once

#include "absl/status/status.h"
#include "base/json.h"
#include "model/decoder_config.h"

namespace pith {

// layer_window from use_sliding_window, sliding_window, max_window_layers (layers from that index on slide) and layer_types.
absl::Status ParseQwenWindows(const Json& config, DecoderConfig& out);

}  // namespace pith
