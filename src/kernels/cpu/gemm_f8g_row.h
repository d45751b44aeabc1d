// The row of a vector fp8 GEMM: bf16 and fp8 activations run through the same code and differ in what is declared.
#pragma once

#include "kernels/cpu/gemm_prepack.h"
#include "kernels/kernel_entry.h"

namespace pith {
namespace {

constexpr GemmKernelEntry F8Row(const char* name, GemmActivation activation, KernelIsa isa, void (*run)(const GemmParams&)) {
  const bool has_bf16 = isa == KernelIsa::kAvx512Vnni || isa == KernelIsa::kAmx;  // products; else codes go on to f32
  return {.name = name,
          .weight = GemmWeight::kF8Grouped,
          .activation = activation,
          .accumulator = "f32 per group, f32 across",
          .multiply = {has_bf16 ? ProbeLimit::kBf16 : ProbeLimit::kF32, 1},
          .isa = isa,
          .can_implement = CanPrepackF8,
          .prepack_bytes = F8PrepackBytes,
          .prepack = PrepackF8,
          .run = run,
          .read_row = ReadF8Row,
          .emulated = has_bf16 ? "fp8 as bf16" : "fp8 as f32"};
}

}  // namespace
}  // namespace pith
