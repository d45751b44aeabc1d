// e4m3 codes in groups by vdpbf16ps, times bf16 or fp8 activations (which are bf16 bits with a scale per row).
// Arithmetic and loops: gemm_driver.h; layout: gemm_layout.h.
#include "kernels/cpu/avx512/fp8.h"
#include "kernels/cpu/avx512_vnni/gemm_lanes.h"
#include "kernels/cpu/gemm_f8g_row.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_bf16_f8g_f32__avx512_vnni;
extern const GemmKernelEntry gemm_fp8_f8g_f32__avx512_vnni;

namespace {

struct F8Format {
  static constexpr bool kDense = false, kDecodeIsLoad = false;
  static constexpr int64_t kUnitK = kW8UnitK, kUnitBytes = kW8UnitBytes;
  using Unit = __m512bh;
  static constexpr PanelLayout Layout(const GemmProblem& problem) { return F8Layout(problem); }
  static PITH_ALWAYS_INLINE Unit Load(const uint8_t* p) { return (__m512bh)Bf16FromE4m3(_mm512_cvtepu8_epi16(Lanes::Load256(p))); }
  static PITH_ALWAYS_INLINE __m512bh Decode(Unit unit, int) { return unit; }
};

}  // namespace

const GemmKernelEntry gemm_bf16_f8g_f32__avx512_vnni = F8Row("gemm_bf16_f8g_f32__avx512_vnni", GemmActivation::kBf16,
                                                             KernelIsa::kAvx512Vnni, RunGemm<Lanes, F8Format>);
const GemmKernelEntry gemm_fp8_f8g_f32__avx512_vnni = F8Row("gemm_fp8_f8g_f32__avx512_vnni", GemmActivation::kFp8, KernelIsa::kAvx512Vnni,
                                                            RunGemm<Lanes, F8Format>);

}  // namespace pith
