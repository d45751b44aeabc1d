// Dense bf16 weights by f32 FMA. Arithmetic and loops: gemm_driver.h; layout: gemm_layout.h.
#include "kernels/cpu/avx512/gemm_lanes.h"
#include "kernels/cpu/gemm_prepack.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_bf16_bf16_f32__avx512;

namespace {

struct DenseFormat {
  static constexpr bool kDense = true, kDecodeIsLoad = false;
  static constexpr int64_t kUnitK = 2, kUnitBytes = 64;
  using Unit = __m512i;
  static constexpr PanelLayout Layout(const GemmProblem& problem) { return DenseLayout(problem); }
  static PITH_ALWAYS_INLINE Unit Load(const uint8_t* p) { return _mm512_load_si512(p); }
  static PITH_ALWAYS_INLINE __m512 Decode(Unit unit, int t) {
    return _mm512_castsi512_ps(t == 0 ? _mm512_slli_epi32(unit, 16) : _mm512_and_si512(unit, _mm512_set1_epi32(-0x10000)));
  }
};

}  // namespace

const GemmKernelEntry gemm_bf16_bf16_f32__avx512 = {
    .name = "gemm_bf16_bf16_f32__avx512",
    .weight = GemmWeight::kBf16,
    .activation = GemmActivation::kBf16,
    .accumulator = "f32",
    .multiply = {ProbeLimit::kF32, 1},
    .isa = KernelIsa::kAvx512,
    .can_implement = CanPrepackDense,
    .prepack_bytes = DensePrepackBytes,
    .prepack = PrepackDense,
    .run = RunGemm<Lanes, DenseFormat>,
    .read_row = ReadDenseRow,
    .emulated = "bf16 as f32",
};

}  // namespace pith
