// All kernel rows this binary has, best instruction set first.
#pragma once

#include <vector>

#include "absl/types/span.h"
#include "base/cpu_features.h"
#include "kernels/kernel_entry.h"

namespace pith {

// Every GEMM row of every table, best ISA first; rows of one ISA in table order (preferred first).
std::vector<const GemmKernelEntry*> AllGemmKernels();
std::vector<const OperatorEntry*> AllOperators();

// Whether this CPU can run a row of `isa`.
inline bool RunsHere(KernelIsa isa) { return ThisCpu().Supports(static_cast<Isa>(isa)); }

}  // namespace pith
