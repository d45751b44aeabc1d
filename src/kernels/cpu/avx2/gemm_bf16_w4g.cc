// 2..4 bit codes in groups by f32 FMA. Arithmetic and loops: gemm_driver.h; layout: gemm_layout.h.
#include "kernels/cpu/avx2/gemm_lanes.h"
#include "kernels/cpu/gemm_prepack.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_bf16_w4g_f32__avx2;

namespace {

struct W4Format {
  static constexpr bool kDense = false, kDecodeIsLoad = false;
  static constexpr int64_t kUnitK = kW4UnitK, kUnitBytes = kW4UnitBytes;
  struct Unit {
    __m256i low, high;
  };
  static constexpr PanelLayout Layout(const GemmProblem& problem) { return W4Layout(problem); }
  static PITH_ALWAYS_INLINE Unit Load(const uint8_t* p) { return {Lanes::Load256(p), Lanes::Load256(p + 32)}; }
  // The nibble moves to the top of its lane, then down again with its sign.
  static PITH_ALWAYS_INLINE __m256i Raise(__m256i half, int t) {
    switch (t) {
      case 0: return _mm256_slli_epi32(half, 28);
      case 1: return _mm256_slli_epi32(half, 12);
      case 2: return _mm256_slli_epi32(half, 24);
      case 3: return _mm256_slli_epi32(half, 8);
      case 4: return _mm256_slli_epi32(half, 20);
      case 5: return _mm256_slli_epi32(half, 4);
      case 6: return _mm256_slli_epi32(half, 16);
      default: return half;
    }
  }
  static PITH_ALWAYS_INLINE __m256 DecodeHalf(__m256i half, int t) { return _mm256_cvtepi32_ps(_mm256_srai_epi32(Raise(half, t), 28)); }
  static PITH_ALWAYS_INLINE Lanes::Vec Decode(Unit unit, int t) { return {DecodeHalf(unit.low, t), DecodeHalf(unit.high, t)}; }
};

}  // namespace

const GemmKernelEntry gemm_bf16_w4g_f32__avx2 = {
    .name = "gemm_bf16_w4g_f32__avx2",
    .weight = GemmWeight::kW4Grouped,
    .activation = GemmActivation::kBf16,
    .accumulator = "f32 per group, f32 across",
    .multiply = {ProbeLimit::kF32, 1},
    .isa = KernelIsa::kAvx2,
    .can_implement = CanPrepackW4,
    .prepack_bytes = W4PrepackBytes,
    .prepack = PrepackW4,
    .run = RunGemm<Lanes, W4Format>,
    .read_row = ReadW4Row,
    .emulated = "bf16 as f32",
};

}  // namespace pith
