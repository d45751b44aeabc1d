#include "quantization/cpu/clip_error.h"

#include <immintrin.h>

#include "quantization/cpu/clip_error_lanes.h"

namespace pith {
namespace {

struct EightLanes {
  using Floats = __m256;
  typedef int32_t Ints __attribute__((vector_size(32)));
  static constexpr int64_t kCount = 8;
  static Floats Load(const float* values) { return _mm256_loadu_ps(values); }
  static Floats Broadcast(float value) { return _mm256_set1_ps(value); }
  static Floats Min(Floats a, Floats b) { return _mm256_min_ps(a, b); }
  static Floats Max(Floats a, Floats b) { return _mm256_max_ps(a, b); }
};

}  // namespace

double clip_error_f32__avx2(const ClipErrorParams& p) { return ClipErrorOf<EightLanes>(p); }

}  // namespace pith
