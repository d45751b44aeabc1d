// e4m3 codes in groups by f32 FMA, times bf16 or fp8 activations (which are bf16 bits with a scale per row).
// Arithmetic and loops: gemm_driver.h; layout: gemm_layout.h.
#include "kernels/cpu/avx2/fp8.h"
#include "kernels/cpu/avx2/gemm_lanes.h"
#include "kernels/cpu/gemm_f8g_row.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_bf16_f8g_f32__avx2;
extern const GemmKernelEntry gemm_fp8_f8g_f32__avx2;

namespace {

struct F8Format {
  static constexpr bool kDense = false, kDecodeIsLoad = false;
  static constexpr int64_t kUnitK = kW8UnitK, kUnitBytes = kW8UnitBytes;
  struct Unit {  // bf16: even k in a lane's low half, odd k in its high half
    __m256i low, high;
  };
  static constexpr PanelLayout Layout(const GemmProblem& problem) { return F8Layout(problem); }
  static PITH_ALWAYS_INLINE Unit Load(const uint8_t* p) {
    return {Bf16FromE4m3(_mm256_cvtepu8_epi16(Lanes::Load128(p))), Bf16FromE4m3(_mm256_cvtepu8_epi16(Lanes::Load128(p + 16)))};
  }
  static PITH_ALWAYS_INLINE __m256 DecodeHalf(__m256i half, int t) {
    return _mm256_castsi256_ps(t == 0 ? _mm256_slli_epi32(half, 16) : _mm256_and_si256(half, _mm256_set1_epi32(~0xFFFF)));
  }
  static PITH_ALWAYS_INLINE Lanes::Vec Decode(Unit unit, int t) { return {DecodeHalf(unit.low, t), DecodeHalf(unit.high, t)}; }
};

}  // namespace

const GemmKernelEntry gemm_bf16_f8g_f32__avx2 = F8Row("gemm_bf16_f8g_f32__avx2", GemmActivation::kBf16, KernelIsa::kAvx2,
                                                      RunGemm<Lanes, F8Format>);
const GemmKernelEntry gemm_fp8_f8g_f32__avx2 = F8Row("gemm_fp8_f8g_f32__avx2", GemmActivation::kFp8, KernelIsa::kAvx2,
                                                     RunGemm<Lanes, F8Format>);

}  // namespace pith
