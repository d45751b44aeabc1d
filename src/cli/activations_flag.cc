#include "cli/activations_flag.h"

#include <map>
#include <string>

#include "CLI/CLI.hpp"

namespace pith {

void AddActivationsFlag(CLI::App& app, WeightOnlyActivation& activations) {
  constexpr float kOutlierThreshold = 6.0f;  // of the paper on LLM.int8()
  static const auto* const kNames = new std::map<std::string, WeightOnlyActivation>{
      {"auto", GemmActivation::kInt16},
      {"int16", GemmActivation::kInt16},
      {"int8", GemmActivation::kInt8},
      {"llm-int8", {GemmActivation::kInt8, kOutlierThreshold}},
      {"bf16", GemmActivation::kBf16}};
  app.add_option_function<std::string>(
         "--activations", [&activations](const std::string& name) { activations = kNames->at(name); },
         "what weight-only quantized matrices are multiplied with (others as their artifact declares): int16, int8 (faster, less exact), "
         "llm-int8 (int8, magnitudes from 6 on in f32) or bf16; auto: int16")
      ->check(CLI::IsMember({"auto", "int16", "int8", "llm-int8", "bf16"}))
      ->default_str("auto");
}

}  // namespace pith
