// GPTQ as a part of a method: gptq_solver.h on the Hessian of each input, with a weighted search of clipping ranges and a refit of scales.
// docs/methods/gptq.md.
#pragma once

#include <memory>

#include "compression/modifier.h"

namespace pith {

// Errors: kUnimplemented for a scheme of float weights.
absl::StatusOr<std::unique_ptr<WeightQuantizer>> MakeGptqQuantizer(const Recipe& recipe);

}  // namespace pith
