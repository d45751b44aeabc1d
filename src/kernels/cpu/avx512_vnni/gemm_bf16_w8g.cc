// 5..8 bit codes in groups by vdpbf16ps: code - 2^(bits-1) is at most 8 significant bits, so it is exact in bf16.
// Arithmetic and loops: gemm_driver.h; layout: gemm_layout.h.
#include "kernels/cpu/avx512_vnni/gemm_lanes.h"
#include "kernels/cpu/gemm_prepack.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_bf16_w8g_f32__avx512_vnni;

namespace {

struct W8Format {
  static constexpr bool kDense = false, kDecodeIsLoad = false;
  static constexpr int64_t kUnitK = kW8UnitK, kUnitBytes = kW8UnitBytes;
  using Unit = __m512bh;
  static constexpr PanelLayout Layout(const GemmProblem& problem) { return W8Layout(problem); }
  static PITH_ALWAYS_INLINE Unit Load(const uint8_t* p) {
    const __m512 low = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(Lanes::Load128(p)));
    const __m512 high = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(Lanes::Load128(p + 16)));
    return _mm512_cvtne2ps_pbh(high, low);
  }
  static PITH_ALWAYS_INLINE __m512bh Decode(Unit unit, int) { return unit; }
};

}  // namespace

const GemmKernelEntry gemm_bf16_w8g_f32__avx512_vnni = {
    .name = "gemm_bf16_w8g_f32__avx512_vnni",
    .weight = GemmWeight::kW8Grouped,
    .activation = GemmActivation::kBf16,
    .accumulator = "f32 per group, f32 across",
    .multiply = {ProbeLimit::kBf16, 1},
    .isa = KernelIsa::kAvx512Vnni,
    .can_implement = CanPrepackW8,
    .prepack_bytes = W8PrepackBytes,
    .prepack = PrepackW8,
    .run = RunGemm<Lanes, W8Format>,
    .read_row = ReadW8Row,
};

}  // namespace pith
