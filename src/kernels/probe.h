// Probes of what a CPU can do, to be measured beside kernels: chains of one multiply instruction that never leave the registers, and a
// plain read of memory. Rows lie in cpu/<isa>/probe.cc. POD only: ISA folders include this header.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_entry.h"
#include "kernels/multiply.h"

namespace pith {

struct ProbeEntry {
  const char* name;  // "probe_bf16_bf16_f32__avx512_vnni"
  KernelIsa isa;
  ProbeLimit limit;
  int64_t multiply_adds_per_step = 0;  // kRead: 0
  // Runs `steps` steps (below 2^20) and returns the multiply-adds done, counted by the arithmetic itself. Null for kRead.
  int64_t (*multiply)(int64_t steps) = nullptr;
  // Reads `bytes` (a multiple of 256) from a 64-byte aligned address; returns the XOR of all 64-bit words. Null for the others.
  uint64_t (*read)(const uint8_t* data, int64_t bytes) = nullptr;
};

}  // namespace pith
