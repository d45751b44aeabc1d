// Instruction sets the kernels know, which of them this CPU has, and the one PITH_FORCE_ISA asks for.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pith {

// Ordered: a later one includes the earlier ones.
enum class Isa { kScalar = 0, kAvx2 = 1, kAvx512 = 2, kAvx512Vnni = 3, kAmx = 4 };

absl::string_view IsaName(Isa isa);  // "scalar", "avx2", "avx512", "avx512_vnni" (VNNI + BF16 + VBMI), "amx" (int8 and bf16 tiles)

// Best instruction set the CPU and the operating system support. The first call asks the system for the tile registers of AMX, which it
// hands out per process.
Isa DetectIsa();

// The value of PITH_FORCE_ISA, or DetectIsa() when unset. Errors: kInvalidArgument for an unknown name, kUnavailable when the CPU lacks it.
absl::StatusOr<Isa> SelectIsa();

// "AMD EPYC 9354, 2 CPUs, avx512_vnni": for reports.
std::string CpuDescription();

}  // namespace pith
