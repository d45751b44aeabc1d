// e4m3 codes in groups by f32 FMA, times bf16 or fp8 activations (which are bf16 bits with a scale per row).
// Arithmetic and loops: gemm_driver.h; layout: gemm_layout.h.
#include "kernels/cpu/avx512/fp8.h"
#include "kernels/cpu/avx512/gemm_lanes.h"
#include "kernels/cpu/gemm_f8g_row.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_bf16_f8g_f32__avx512;
extern const GemmKernelEntry gemm_fp8_f8g_f32__avx512;

namespace {

struct F8Format {
  static constexpr bool kDense = false, kDecodeIsLoad = false;
  static constexpr int64_t kUnitK = kW8UnitK, kUnitBytes = kW8UnitBytes;
  using Unit = __m512i;  // bf16: even k in a lane's low half, odd k in its high half
  static constexpr PanelLayout Layout(const GemmProblem& problem) { return F8Layout(problem); }
  static PITH_ALWAYS_INLINE Unit Load(const uint8_t* p) { return Bf16FromE4m3(_mm512_cvtepu8_epi16(Lanes::Load256(p))); }
  static PITH_ALWAYS_INLINE __m512 Decode(Unit unit, int t) {
    return _mm512_castsi512_ps(t == 0 ? _mm512_slli_epi32(unit, 16) : _mm512_and_si512(unit, _mm512_set1_epi32(~0xFFFF)));
  }
};

}  // namespace

const GemmKernelEntry gemm_bf16_f8g_f32__avx512 = F8Row("gemm_bf16_f8g_f32__avx512", GemmActivation::kBf16, KernelIsa::kAvx512,
                                                        RunGemm<Lanes, F8Format>);
const GemmKernelEntry gemm_fp8_f8g_f32__avx512 = F8Row("gemm_fp8_f8g_f32__avx512", GemmActivation::kFp8, KernelIsa::kAvx512,
                                                       RunGemm<Lanes, F8Format>);

}  // namespace pith
