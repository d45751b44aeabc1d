// One row per architecture that can be run: how its config.json is read and what its weights are called.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/json.h"
#include "model/decoder_config.h"
#include "model/weight_map.h"

namespace pith {

struct Architecture {
  const char* model_type;                                      // of config.json
  const char* class_name;                                      // of "architectures" in config.json, when it names one
  absl::StatusOr<DecoderConfig> (*parse)(const Json& config);  // sets everything but model_type
  LayerNormNames norms;
};

// THE TABLE (architecture_table.cc).
absl::Span<const Architecture> AllArchitectures();

// Errors: kUnimplemented listing the known model types.
absl::StatusOr<const Architecture*> FindArchitecture(absl::string_view model_type);

}  // namespace pith
