// 5..8 bit codes in groups by f32 FMA. Arithmetic and loops: gemm_driver.h; layout: gemm_layout.h.
#include "kernels/cpu/avx512/gemm_lanes.h"
#include "kernels/cpu/gemm_prepack.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_bf16_w8g_f32__avx512;

namespace {

struct W8Format {
  static constexpr bool kDense = false, kDecodeIsLoad = false;
  static constexpr int64_t kUnitK = kW8UnitK, kUnitBytes = kW8UnitBytes;
  using Unit = __m512i;  // a lane's low 16 bits: even k, odd k, sign extended
  static constexpr PanelLayout Layout(const GemmProblem& problem) { return W8Layout(problem); }
  static PITH_ALWAYS_INLINE Unit Load(const uint8_t* p) { return _mm512_cvtepi16_epi32(Lanes::Load256(p)); }
  static PITH_ALWAYS_INLINE __m512 Decode(Unit unit, int t) {
    return _mm512_cvtepi32_ps(t == 0 ? _mm512_srai_epi32(_mm512_slli_epi32(unit, 24), 24) : _mm512_srai_epi32(unit, 8));
  }
};

}  // namespace

const GemmKernelEntry gemm_bf16_w8g_f32__avx512 = {
    .name = "gemm_bf16_w8g_f32__avx512",
    .weight = GemmWeight::kW8Grouped,
    .activation = GemmActivation::kBf16,
    .accumulator = "f32 per group, f32 across",
    .multiply = {ProbeLimit::kF32, 1},
    .isa = KernelIsa::kAvx512,
    .can_implement = CanPrepackW8,
    .prepack_bytes = W8PrepackBytes,
    .prepack = PrepackW8,
    .run = RunGemm<Lanes, W8Format>,
    .read_row = ReadW8Row,
    .emulated = "bf16 as f32",
};

}  // namespace pith
