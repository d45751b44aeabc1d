// Instruction sets the kernels know, which of them this CPU has, and the one PITH_FORCE_ISA asks for.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pith {

// Ordered, the best last. A later one includes the earlier ones, but kAvx2Vnni is included by none: CPUs with AVX-512 may lack AVX-VNNI.
enum class Isa { kScalar = 0, kAvx2 = 1, kAvx2Vnni = 2, kAvx512 = 3, kAvx512Vnni = 4, kAmx = 5 };
inline constexpr Isa kAllIsas[] = {Isa::kScalar, Isa::kAvx2, Isa::kAvx2Vnni, Isa::kAvx512, Isa::kAvx512Vnni, Isa::kAmx};

// "scalar", "avx2", "avx2_vnni" (AVX-VNNI), "avx512", "avx512_vnni" (VNNI + BF16 + VBMI), "amx" (int8 and bf16 tiles)
absl::string_view IsaName(Isa isa);

// Whether code for `part` may run where `isa` was chosen. The same on every CPU.
constexpr bool IsaIncludes(Isa isa, Isa part) { return part == Isa::kAvx2Vnni ? isa == part : part <= isa; }

// What a CPU has and its operating system lets a process use, each flag by itself.
struct CpuFeatures {
  bool avx2 = false;  // with FMA, F16C and BMI2
  bool avx_vnni = false;
  bool avx512 = false;       // F, BW, DQ, VL
  bool avx512_vnni = false;  // with BF16 and VBMI
  bool amx = false;          // tiles, int8, bf16

  bool Supports(Isa isa) const;
  std::vector<Isa> SupportedIsas() const;  // the best last
};

// Of this CPU. The first call asks the system for the tile registers of AMX, which it hands out per process.
const CpuFeatures& ThisCpu();

// Best instruction set of this CPU.
Isa DetectIsa();

// The value of PITH_FORCE_ISA, or the best of `cpu` when unset. Errors: kInvalidArgument for an unknown name, kUnavailable when the CPU
// lacks it.
absl::StatusOr<Isa> SelectIsa(const CpuFeatures& cpu = ThisCpu());

// "AMD EPYC 9354, 2 CPUs, avx512_vnni": for reports.
std::string CpuDescription();

}  // namespace pith
