// A hash of the layouts that GEMM rows prepack into, found by prepacking: prepacked bytes that were stored under one fingerprint are what
// the rows of this binary would make of the same codes and scales. Nobody has to remember to count a version up.
#pragma once

#include <string>

#include "base/cpu_features.h"

namespace pith {

// Over the name of every GEMM row with an ISA of at most `isa`, and the bytes into which it prepacks small matrices of every kind it takes:
// dense or quantized, symmetric, with zero points, with mins; scales in every form. 64 hex digits. A few milliseconds.
// It does not see what happens before prepacking (decoding of stored formats, rounding to bf16): that is the version of the program.
std::string LayoutFingerprint(Isa isa);

}  // namespace pith
