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

inline constexpr float kOutlierThreshold = 6.0f;  // of LLM_INT8

struct QuantizationScheme {
  std::string name;    // "W4A16"
  std::string format;  // of the format table: "pack-quantized", "int-quantized", "bitsandbytes", ...; or "dense"
  std::optional<QuantizationArgs> weights;
  std::optional<QuantizationArgs> input_activations;

  // Whether it has scales that only data can tell: static ones of activations.
  bool NeedsCalibration() const { return input_activations.has_value() && !input_activations->dynamic; }
  // LLM.int8(): whether channels of the input stay out of the codes.
  bool HasOutliers() const { return input_activations.has_value() && input_activations->outlier_threshold > 0; }
};

// THE TABLE of schemes: BF16, W8A16, W4A16, W8A8, FP8_DYNAMIC, ... (presets.cc). Every row can be stored and run, and quantized to unless
// NeedsCalibration.
// Weights of a group scheme have group_size 0: resolve it with ResolveGroupSize and WithStrategy once the layers are known.
absl::Span<const QuantizationScheme> PresetSchemes();

// Case-insensitive. Errors: kUnimplemented listing the known names (with the nearest first).
absl::StatusOr<QuantizationScheme> FindScheme(absl::string_view name);

// The preset's name of a scheme with weights of these bits, type and symmetry, whatever shares a scale, and these activations, whatever
// their outliers are; empty when there is none.
absl::string_view PresetName(const std::optional<QuantizationArgs>& weights, const std::optional<QuantizationArgs>& input_activations);

// The scheme with weights per tensor, channel or group, or per block where it is so already. `group_size` > 0 with kGroup, else 0.
// Errors: kInvalidArgument for a scheme without quantized weights and what Validate refuses.
absl::StatusOr<QuantizationScheme> WithStrategy(const QuantizationScheme& scheme, QuantizationStrategy strategy, int group_size);

// A targeted layer and its row length.
struct RowLength {
  std::string name;  // for messages
  int64_t in = 0;
};

// The group size for a set of layers. requested > 0: that one, which must divide every row. requested == 0 ("auto"): the largest power
// of two from 16 to 128 that divides every row, since serving engines have kernels for those; where there is none, the largest size from 16
// to 128 that does (smaller groups would store more scale than code).
// Errors: kInvalidArgument naming rows that do not divide, and sizes that would.
absl::StatusOr<int> ResolveGroupSize(absl::Span<const RowLength> layers, int requested);

}  // namespace pith
