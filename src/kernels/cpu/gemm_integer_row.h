// The row of an integer GEMM: what the kind of weights and of activations decides is the same for every instruction set.
#pragma once

#include "kernels/cpu/gemm_outliers.h"
#include "kernels/cpu/gemm_prepack.h"
#include "kernels/kernel_entry.h"

namespace pith {
namespace {

// weight: kW8Grouped or kW4Grouped; activation: kInt16 or kInt8. Two int8 planes are multiplied one after the other, but by scalar and avx2
// rows, which join them to numbers of 16 bits first. (avx2 then takes 4/3 of the instructions that its probe counts with.)
constexpr GemmKernelEntry IntegerRow(const char* name, GemmWeight weight, GemmActivation activation, KernelIsa isa,
                                     void (*run)(const GemmParams&)) {
  const bool bytes = weight == GemmWeight::kW8Grouped;
  const bool joins_planes = isa == KernelIsa::kScalar || isa == KernelIsa::kAvx2;
  return {.name = name,
          .weight = weight,
          .activation = activation,
          .accumulator = "int32 per group, f32 across",
          .multiply = {ProbeLimit::kInt8, activation == GemmActivation::kInt16 && !joins_planes ? 2 : 1},
          .isa = isa,
          .can_implement = bytes ? CanPrepackI8 : CanPrepackI4,
          .prepack_bytes = bytes ? I8PrepackBytes : I4PrepackBytes,
          .prepack = bytes ? PrepackI8 : PrepackI4,
          .run = run,
          .read_row = bytes ? ReadI8Row : ReadI4Row,
          .add_outliers = bytes && activation == GemmActivation::kInt8 ? AddI8Outliers : nullptr};
}

}  // namespace
}  // namespace pith
