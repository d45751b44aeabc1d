#include "quantization/quantization_scheme.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "base/nearest_name.h"
#include "base/status.h"

namespace pith {
namespace {

using enum QuantizationStrategy;

constexpr QuantizationArgs GroupedInt(int num_bits, bool symmetric) {
  return {.num_bits = num_bits, .symmetric = symmetric, .strategy = QuantizationStrategy::kGroup, .group_size = 0};
}

constexpr QuantizationArgs Int8(QuantizationStrategy strategy, bool dynamic) { return {.strategy = strategy, .dynamic = dynamic}; }

// LLM.int8(), Dettmers et al. 2022 (arXiv 2208.07339), section 3.2: the threshold of the paper.
constexpr QuantizationArgs Int8WithOutliers() {
  return {.strategy = QuantizationStrategy::kToken, .dynamic = true, .outlier_threshold = kOutlierThreshold};
}

constexpr QuantizationArgs Fp8(QuantizationStrategy strategy, bool dynamic) {
  return {.type = QuantizationType::kFloat, .strategy = strategy, .dynamic = dynamic};
}

constexpr QuantizationArgs Fp8Block(int side) {
  return {.type = QuantizationType::kFloat, .strategy = QuantizationStrategy::kBlock, .block_rows = side, .block_cols = side};
}

constexpr QuantizationArgs Fp8Groups(int group_size) {
  return {.type = QuantizationType::kFloat, .strategy = QuantizationStrategy::kGroup, .group_size = group_size, .dynamic = true};
}

struct Preset {
  absl::string_view name;
  absl::string_view format;
  std::optional<QuantizationArgs> weights;
  std::optional<QuantizationArgs> input_activations;
};

// THE TABLE.
constexpr Preset kPresets[] = {
    {"BF16", "dense", std::nullopt, std::nullopt},
    {"W8A16", "pack-quantized", GroupedInt(8, true), std::nullopt},
    {"W4A16", "pack-quantized", GroupedInt(4, true), std::nullopt},
    {"W4A16_ASYM", "pack-quantized", GroupedInt(4, false), std::nullopt},
    {"W4A8", "int-quantized", GroupedInt(4, true), Int8(kToken, true)},
    {"W8A8", "int-quantized", Int8(kChannel, false), Int8(kToken, true)},
    {"W8A8_STATIC", "int-quantized", Int8(kChannel, false), Int8(kTensor, false)},
    {"LLM_INT8", "bitsandbytes", Int8(kChannel, false), Int8WithOutliers()},
    {"FP8", "float-quantized", Fp8(kTensor, false), Fp8(kTensor, false)},
    {"FP8_DYNAMIC", "float-quantized", Fp8(kChannel, false), Fp8(kToken, true)},
    {"FP8_BLOCK", "float-quantized", Fp8Block(128), Fp8Groups(128)},
};

// Whether two kinds of weights differ at most in how many of them share a scale.
bool SameCodes(const std::optional<QuantizationArgs>& a, const std::optional<QuantizationArgs>& b) {
  if (!a.has_value() || !b.has_value()) return a.has_value() == b.has_value();
  return a->num_bits == b->num_bits && a->type == b->type && a->symmetric == b->symmetric && a->dynamic == b->dynamic;
}

// Whether two kinds of activations differ at most in which values are outliers.
bool SameInput(std::optional<QuantizationArgs> a, const std::optional<QuantizationArgs>& b) {
  if (!a.has_value() || !b.has_value()) return a.has_value() == b.has_value();
  if (a->outlier_threshold > 0 && b->outlier_threshold > 0) a->outlier_threshold = b->outlier_threshold;
  a->fixed_outliers = b->fixed_outliers;
  return a == b;
}

}  // namespace

absl::Span<const QuantizationScheme> PresetSchemes() {
  static const std::vector<QuantizationScheme> schemes = [] {
    std::vector<QuantizationScheme> rows;
    for (const Preset& row : kPresets) rows.push_back({std::string(row.name), std::string(row.format), row.weights, row.input_activations});
    return rows;
  }();
  return schemes;
}

absl::StatusOr<QuantizationScheme> FindScheme(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const QuantizationScheme& scheme : PresetSchemes()) {
    if (absl::EqualsIgnoreCase(scheme.name, name)) return scheme;
    names.push_back(scheme.name);
  }
  return NotSupportedError("scheme \"", Printable(name, 60), "\": not known, nearest is ", NearestName(name, names), "; known are ",
                           absl::StrJoin(names, " "));
}

absl::string_view PresetName(const std::optional<QuantizationArgs>& weights, const std::optional<QuantizationArgs>& input_activations) {
  for (const Preset& row : kPresets) {
    if (SameCodes(row.weights, weights) && SameInput(row.input_activations, input_activations)) return row.name;
  }
  return "";
}

}  // namespace pith
