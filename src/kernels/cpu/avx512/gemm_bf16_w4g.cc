// 2..4 bit codes in groups by f32 FMA: nibbles become f32 by a table look-up. Arithmetic and loops: gemm_driver.h; layout: gemm_layout.h.
#include "kernels/cpu/avx512/gemm_lanes.h"
#include "kernels/cpu/gemm_prepack.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_bf16_w4g_f32__avx512;

namespace {

// Values of a nibble in two's complement; vpermps looks at the low four bits of each lane.
alignas(64) constexpr float kNibbleValues[16] = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1};

struct W4Format {
  static constexpr bool kDense = false, kDecodeIsLoad = false;
  static constexpr int64_t kUnitK = kW4UnitK, kUnitBytes = kW4UnitBytes;
  using Unit = __m512i;
  static constexpr PanelLayout Layout(const GemmProblem& problem) { return W4Layout(problem); }
  static PITH_ALWAYS_INLINE Unit Load(const uint8_t* p) { return _mm512_load_si512(p); }
  static PITH_ALWAYS_INLINE __m512 LookUp(Unit unit) { return _mm512_permutexvar_ps(unit, _mm512_load_ps(kNibbleValues)); }
  static PITH_ALWAYS_INLINE __m512 Decode(Unit unit, int t) {
    switch (t) {
      case 0: return LookUp(unit);
      case 1: return LookUp(_mm512_srli_epi32(unit, 16));
      case 2: return LookUp(_mm512_srli_epi32(unit, 4));
      case 3: return LookUp(_mm512_srli_epi32(unit, 20));
      case 4: return LookUp(_mm512_srli_epi32(unit, 8));
      case 5: return LookUp(_mm512_srli_epi32(unit, 24));
      case 6: return LookUp(_mm512_srli_epi32(unit, 12));
      default: return LookUp(_mm512_srli_epi32(unit, 28));
    }
  }
};

}  // namespace

const GemmKernelEntry gemm_bf16_w4g_f32__avx512 = {
    .name = "gemm_bf16_w4g_f32__avx512",
    .weight = GemmWeight::kW4Grouped,
    .activation = GemmActivation::kBf16,
    .accumulator = "f32 per group, f32 across",
    .multiply = {ProbeLimit::kF32, 1},
    .isa = KernelIsa::kAvx512,
    .can_implement = CanPrepackW4,
    .prepack_bytes = W4PrepackBytes,
    .prepack = PrepackW4,
    .run = RunGemm<Lanes, W4Format>,
    .read_row = ReadW4Row,
    .emulated = "bf16 as f32",
};

}  // namespace pith
