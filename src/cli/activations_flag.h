// --activations, the same on every command that runs a model.
#pragma once

#include "kernels/gemm.h"

namespace CLI {
class App;
}

namespace pith {

// Sets `activations` to what weight-only quantized matrices are multiplied with. auto: int16.
void AddActivationsFlag(CLI::App& app, GemmActivation& activations);

}  // namespace pith
