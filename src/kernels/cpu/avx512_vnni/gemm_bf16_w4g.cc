// 2..4 bit codes in groups by vdpbf16ps: nibbles become bf16 exactly, by a table look-up on the low bits of 16-bit lanes.
// Arithmetic and loops: gemm_driver.h; layout: gemm_layout.h.
#include "kernels/cpu/avx512_vnni/gemm_lanes.h"
#include "kernels/cpu/gemm_prepack.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_bf16_w4g_f32__avx512_vnni;

namespace {

// bf16 bits of 0 .. 7, -8 .. -1, twice: vpermw looks at five bits, the fifth being the next nibble's.
alignas(64) constexpr uint16_t kNibbleValues[32] = {0x0000, 0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0, 0x40C0, 0x40E0, 0xC100, 0xC0E0, 0xC0C0,
                                                    0xC0A0, 0xC080, 0xC040, 0xC000, 0xBF80, 0x0000, 0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0,
                                                    0x40C0, 0x40E0, 0xC100, 0xC0E0, 0xC0C0, 0xC0A0, 0xC080, 0xC040, 0xC000, 0xBF80};

struct W4Format {
  static constexpr bool kDense = false, kDecodeIsLoad = false;
  static constexpr int64_t kUnitK = kW4UnitK, kUnitBytes = kW4UnitBytes;
  using Unit = __m512i;
  static constexpr PanelLayout Layout(const GemmProblem& problem) { return W4Layout(problem); }
  static PITH_ALWAYS_INLINE Unit Load(const uint8_t* p) { return _mm512_load_si512(p); }
  static PITH_ALWAYS_INLINE __m512bh LookUp(Unit unit) {
    return (__m512bh)_mm512_permutexvar_epi16(unit, _mm512_load_si512(kNibbleValues));
  }
  static PITH_ALWAYS_INLINE __m512bh Decode(Unit unit, int t) {
    switch (t) {
      case 0: return LookUp(unit);
      case 1: return LookUp(_mm512_srli_epi16(unit, 4));
      case 2: return LookUp(_mm512_srli_epi16(unit, 8));
      default: return LookUp(_mm512_srli_epi16(unit, 12));
    }
  }
};

}  // namespace

const GemmKernelEntry gemm_bf16_w4g_f32__avx512_vnni = {
    .name = "gemm_bf16_w4g_f32__avx512_vnni",
    .weight = GemmWeight::kW4Grouped,
    .activation = GemmActivation::kBf16,
    .accumulator = "f32 per group, f32 across",
    .multiply = {ProbeLimit::kBf16, 1},
    .isa = KernelIsa::kAvx512Vnni,
    .can_implement = CanPrepackW4,
    .prepack_bytes = W4PrepackBytes,
    .prepack = PrepackW4,
    .run = RunGemm<Lanes, W4Format>,
    .read_row = ReadW4Row,
};

}  // namespace pith
