// How a kernel row multiplies, in the words of the probes (probe.h), so that its rate can be set beside what the CPU could do.
// POD only: ISA folders include this header.
#pragma once

#include <cstdint>

namespace pith {

// What a probe finds the limit of.
enum class ProbeLimit : int32_t {
  kRead = 0,  // bytes per second from wherever the buffer lies
  kF32 = 1,   // multiply-adds on f32
  kBf16 = 2,  // dot products of bf16 into f32
  kInt8 = 3,  // dot products of u8 and s8 into int32
};

// The multiplications of a row: the probe of its instruction set that bounds them, and how many of the probe's multiply-adds one of the
// operator takes. Where a row has several loops (tiles for many rows of activations, vectors for few), the fastest one counts: the limit of
// a row is above all of them.
struct KernelMultiply {
  ProbeLimit limit = ProbeLimit::kF32;
  int32_t passes = 0;  // 2: operands in two parts; 0: element-wise rows, which bytes bound
};

}  // namespace pith
