#include "quantization/cpu/clip_error.h"

#include <immintrin.h>

#include "quantization/cpu/clip_error_lanes.h"

namespace pith {
namespace {

struct SixteenLanes {
  using Floats = __m512;
  typedef int32_t Ints __attribute__((vector_size(64)));
  static constexpr int64_t kCount = 16;
  static Floats Load(const float* values) { return _mm512_loadu_ps(values); }
  static Floats Broadcast(float value) { return _mm512_set1_ps(value); }
  static Floats Min(Floats a, Floats b) { return _mm512_min_ps(a, b); }
  static Floats Max(Floats a, Floats b) { return _mm512_max_ps(a, b); }
};

}  // namespace

double clip_error_f32__avx512(const ClipErrorParams& p) { return ClipErrorOf<SixteenLanes>(p); }

}  // namespace pith
