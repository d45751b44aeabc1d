// Dense bf16 weights by AMX tiles. Arithmetic and loops: gemm_bf16_tiles.h.
#include "kernels/cpu/amx/gemm_bf16_tiles.h"
#include "kernels/cpu/gemm_prepack.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_bf16_bf16_f32__amx;

namespace {

const char* CanImplement(const GemmProblem& problem) {
  const char* reason = CanTile(problem);
  return reason != nullptr ? reason : CanPrepackDense(problem);
}

}  // namespace

const GemmKernelEntry gemm_bf16_bf16_f32__amx = {
    .name = "gemm_bf16_bf16_f32__amx",
    .weight = GemmWeight::kBf16,
    .activation = GemmActivation::kBf16,
    .accumulator = "f32",
    .multiply = {ProbeLimit::kBf16, 1},
    .isa = KernelIsa::kAmx,
    .can_implement = CanImplement,
    .prepack_bytes = DensePrepackBytes,
    .prepack = PrepackDense,
    .run = RunTiles<DenseTiles>,
    .read_row = ReadDenseRow,
};

}  // namespace pith
