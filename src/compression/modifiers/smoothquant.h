// SmoothQuant as a part of a method: scales of the channels of each input by smoothquant_solver.h. docs/methods/smoothquant.md.
#pragma once

#include <memory>

#include "compression/modifier.h"

namespace pith {

// Errors: kUnimplemented for a scheme that does not multiply int8 activations.
absl::StatusOr<std::unique_ptr<InputScaler>> MakeSmoothQuantScaler(const Recipe& recipe);

}  // namespace pith
