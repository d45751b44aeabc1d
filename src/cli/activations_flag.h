// --activations, the same on every command that runs a model.
#pragma once

#include "nn/compute_context.h"

namespace CLI {
class App;
}

namespace pith {

// Sets `activations` to what weight-only quantized matrices are multiplied with. auto: int16; llm-int8: int8 with outliers from 6 on.
void AddActivationsFlag(CLI::App& app, WeightOnlyActivation& activations);

}  // namespace pith
