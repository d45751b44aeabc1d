// Finds the probe of a limit for an instruction set. Thread-safe.
#pragma once

#include <vector>

#include "base/cpu_features.h"
#include "kernels/probe.h"

namespace pith {

// Every row, best instruction set first.
std::vector<const ProbeEntry*> AllProbes();

// The row of the best instruction set that `isa` includes; null when none has the instruction (bf16 dot products below AVX-512 BF16).
const ProbeEntry* FindProbe(ProbeLimit limit, Isa isa);

}  // namespace pith
