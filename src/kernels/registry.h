// All kernel rows this binary has, best instruction set first. The tables are constant and linked in; every function here is thread-safe,
// and the pointers it returns are valid for ever.
#pragma once

#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/cpu_features.h"
#include "kernels/kernel_entry.h"

namespace pith {

// Every GEMM row of every table, best ISA first; rows of one ISA in table order (preferred first).
std::vector<const GemmKernelEntry*> AllGemmKernels();
std::vector<const OperatorEntry*> AllOperators();

// What a row of either table says of itself to reports.
struct KernelRow {
  const char* name = nullptr;
  KernelIsa isa = KernelIsa::kScalar;
  KernelMultiply multiply;
  const char* emulated = nullptr;  // nullptr, or "fp8 as bf16"
  bool is_gemm = false;
};
// The row of this name; nullopt where no table has it.
std::optional<KernelRow> FindKernel(absl::string_view name);

// Whether this CPU can run a row of `isa`.
inline bool RunsHere(KernelIsa isa) { return ThisCpu().Supports(static_cast<Isa>(isa)); }

}  // namespace pith
