// Dense bf16 weights by f32 FMA. Arithmetic and loops: gemm_driver.h; layout: gemm_layout.h.
#include "kernels/cpu/avx2/gemm_lanes.h"
#include "kernels/cpu/gemm_prepack.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_bf16_bf16_f32__avx2;

namespace {

struct DenseFormat {
  static constexpr bool kDense = true, kDecodeIsLoad = false;
  static constexpr int64_t kUnitK = 2, kUnitBytes = 64;
  struct Unit {
    __m256i low, high;
  };
  static constexpr PanelLayout Layout(const GemmProblem& problem) { return DenseLayout(problem); }
  static PITH_ALWAYS_INLINE Unit Load(const uint8_t* p) { return {Lanes::Load256(p), Lanes::Load256(p + 32)}; }
  static PITH_ALWAYS_INLINE __m256 DecodeHalf(__m256i half, int t) {
    return _mm256_castsi256_ps(t == 0 ? _mm256_slli_epi32(half, 16) : _mm256_and_si256(half, _mm256_set1_epi32(-0x10000)));
  }
  static PITH_ALWAYS_INLINE Lanes::Vec Decode(Unit unit, int t) { return {DecodeHalf(unit.low, t), DecodeHalf(unit.high, t)}; }
};

}  // namespace

const GemmKernelEntry gemm_bf16_bf16_f32__avx2 = {
    .name = "gemm_bf16_bf16_f32__avx2",
    .weight = GemmWeight::kBf16,
    .activation = GemmActivation::kBf16,
    .accumulator = "f32",
    .multiply = {ProbeLimit::kF32, 1},
    .isa = KernelIsa::kAvx2,
    .can_implement = CanPrepackDense,
    .prepack_bytes = DensePrepackBytes,
    .prepack = PrepackDense,
    .run = RunGemm<Lanes, DenseFormat>,
    .read_row = ReadDenseRow,
    .emulated = "bf16 as f32",
};

}  // namespace pith
