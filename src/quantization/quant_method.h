// Other values of quant_method in config.json than "compressed-tensors": how each says which modules are quantized and how. A method
// belongs to a stored format and lies beside it (formats/gptq.cc, ...); the table of formats names it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "quantization/quantization_config.h"

namespace pith {

struct QuantMethod {
  absl::string_view name;  // "gptq"
  // The quantization_config object. Errors: those of ParseQuantizationConfig.
  absl::StatusOr<QuantizationConfig> (*parse)(const Json& json);
  // The smallest key set that published loaders accept. `config` is what `parse` gives, or made by MakeMethodConfig.
  Json (*write)(const QuantizationConfig& config);
  // The entry that leaves a module alone. Errors: kDataLoss for a name that cannot be written.
  absl::StatusOr<ModulePattern> (*skip)(absl::string_view module);
};

// A config of one group that targets every Linear; modules whose name has one of `skipped` in it are left alone. No activations.
absl::StatusOr<QuantizationConfig> MakeMethodConfig(absl::string_view format, const QuantizationArgs& weights,
                                                    const std::vector<std::string>& skipped);

// A pattern for every module whose name has `part` in it. Errors: kDataLoss for a text that no name has.
absl::StatusOr<ModulePattern> MatchPartOfName(absl::string_view part);
// The part, of a pattern made so; else the pattern's text.
std::string PartOfName(const ModulePattern& pattern);

// A list of texts, or null; `absent` when it is not there. Errors: kDataLoss naming the key.
absl::StatusOr<std::vector<std::string>> GetTexts(const Json& object, absl::string_view key, const std::vector<std::string>& absent);

// The parts of names in `ignore`, as a list.
Json SkippedParts(const QuantizationConfig& config);

// Weights of integers in groups of `group_size`; -1: per channel. Errors: kDataLoss.
absl::StatusOr<QuantizationArgs> GroupedArgs(int64_t bits, int64_t group_size, bool symmetric);
// The inverse of group_size.
int64_t GroupSizeOrMinusOne(const QuantizationArgs& args);

}  // namespace pith
