// AWQ as a part of a method: scales of the channels of each input by awq_search.h. docs/methods/awq.md.
#pragma once

#include <memory>

#include "compression/modifier.h"

namespace pith {

// Errors: kUnimplemented for a scheme of float weights.
absl::StatusOr<std::unique_ptr<InputScaler>> MakeAwqScaler(const Recipe& recipe);

}  // namespace pith
