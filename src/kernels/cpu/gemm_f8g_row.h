// The row of a vector fp8 GEMM: bf16 and fp8 activations run through the same code and differ in what is declared.
#pragma once

#include "kernels/cpu/gemm_prepack.h"
#include "kernels/kernel_entry.h"

namespace pith {
namespace {

constexpr GemmKernelEntry F8Row(const char* name, GemmActivation activation, KernelIsa isa, void (*run)(const GemmParams&)) {
  return {.name = name,
          .weight = GemmWeight::kF8Grouped,
          .activation = activation,
          .accumulator = "f32 per group, f32 across",
          .isa = isa,
          .can_implement = CanPrepackF8,
          .prepack_bytes = F8PrepackBytes,
          .prepack = PrepackF8,
          .run = run,
          .read_row = ReadF8Row,
          .emulated = "fp8 as bf16"};
}

}  // namespace
}  // namespace pith
