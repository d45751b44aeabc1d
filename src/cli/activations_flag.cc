#include "cli/activations_flag.h"

#include <map>
#include <string>

#include "CLI/CLI.hpp"

namespace pith {

void AddActivationsFlag(CLI::App& app, GemmActivation& activations) {
  static const auto* const kNames = new std::map<std::string, GemmActivation>{{"auto", GemmActivation::kInt16},
                                                                              {"int16", GemmActivation::kInt16},
                                                                              {"int8", GemmActivation::kInt8},
                                                                              {"bf16", GemmActivation::kBf16}};
  app.add_option_function<std::string>(
         "--activations", [&activations](const std::string& name) { activations = kNames->at(name); },
         "what weight-only quantized matrices are multiplied with (others as their artifact declares): int16, int8 (faster, less exact) or "
         "bf16; auto: int16")
      ->check(CLI::IsMember({"auto", "int16", "int8", "bf16"}))
      ->default_str("auto");
}

}  // namespace pith
