// Dense bf16 weights by vdpbf16ps. Arithmetic and loops: gemm_driver.h; layout: gemm_layout.h.
#include "kernels/cpu/avx512_vnni/gemm_lanes.h"
#include "kernels/cpu/gemm_prepack.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_bf16_bf16_f32__avx512_vnni;

namespace {

struct DenseFormat {
  static constexpr bool kDense = true, kDecodeIsLoad = true;
  static constexpr int64_t kUnitK = 2, kUnitBytes = 64;
  using Unit = __m512bh;
  static constexpr PanelLayout Layout(const GemmProblem& problem) { return DenseLayout(problem); }
  static PITH_ALWAYS_INLINE Unit Load(const uint8_t* p) { return Lanes::LoadPlane(p); }
  static PITH_ALWAYS_INLINE __m512bh Decode(Unit unit, int) { return unit; }
};

}  // namespace

const GemmKernelEntry gemm_bf16_bf16_f32__avx512_vnni = {
    .name = "gemm_bf16_bf16_f32__avx512_vnni",
    .weight = GemmWeight::kBf16,
    .activation = GemmActivation::kBf16,
    .accumulator = "f32",
    .multiply = {ProbeLimit::kBf16, 1},
    .isa = KernelIsa::kAvx512Vnni,
    .can_implement = CanPrepackDense,
    .prepack_bytes = DensePrepackBytes,
    .prepack = PrepackDense,
    .run = RunGemm<Lanes, DenseFormat>,
    .read_row = ReadDenseRow,
};

}  // namespace pith
