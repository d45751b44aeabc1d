// e4m3 codes in groups by f32 FMA, times bf16 or fp8 activations (which are bf16 bits with a scale per row).
// Arithmetic and loops: gemm_driver.h; layout: gemm_layout.h.
#include "kernels/cpu/avx512/fp8.h"
#include "kernels/cpu/avx512/gemm_lanes.h"
#include "kernels/cpu/gemm_prepack.h"
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

const GemmKernelEntry gemm_bf16_f8g_f32__avx512 = {
    .name = "gemm_bf16_f8g_f32__avx512",
    .weight = GemmWeight::kF8Grouped,
    .activation = GemmActivation::kBf16,
    .accumulator = "f32 per group, f32 across",
    .isa = KernelIsa::kAvx512,
    .can_implement = CanPrepackF8,
    .prepack_bytes = F8PrepackBytes,
    .prepack = PrepackF8,
    .run = RunGemm<Lanes, F8Format>,
    .read_row = ReadF8Row,
    .emulated = "fp8 as bf16",
};

const GemmKernelEntry gemm_fp8_f8g_f32__avx512 = {
    .name = "gemm_fp8_f8g_f32__avx512",
    .weight = GemmWeight::kF8Grouped,
    .activation = GemmActivation::kFp8,
    .accumulator = "f32 per group, f32 across",
    .isa = KernelIsa::kAvx512,
    .can_implement = CanPrepackF8,
    .prepack_bytes = F8PrepackBytes,
    .prepack = PrepackF8,
    .run = RunGemm<Lanes, F8Format>,
    .read_row = ReadF8Row,
    .emulated = "fp8 as bf16",
};

}  // namespace pith
