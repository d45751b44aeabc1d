// A named bundle of QuantizationArgs for the weights and activations of the modules it targets, and the table of presets.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "quantization/quantization_args.h"

namespace pith {

struct QuantizationScheme {
  std::string name;                                    // "W4A16"
  std::string format;                                  // "pack-quantized", "int-quantized", "float-quantized", "naive-quantized", "dense"
  std::optional<QuantizationArgs> weights;
  std::optional<QuantizationArgs> input_activations;
};

// THE TABLE of schemes: W8A16, W4A16, W4A16_ASYM, ... (presets.cc). Every row can be quantized to, stored and run.
absl::Span<const QuantizationScheme> PresetSchemes();

// Case-insensitive. Errors: kUnimplemented listing the known names (with the nearest first).
absl::StatusOr<QuantizationScheme> FindScheme(absl::string_view name);

}  // namespace pith
