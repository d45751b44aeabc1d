// clip_error.h on vectors of L::kCount floats (4, 8 or 16), in the compiler's vector types. Internal linkage: each instruction set has its
// own copy. L has the types Floats and Ints, kCount, and Load (of any address), Broadcast, Min and Max (the second where one is a NaN).
#pragma once

#include <cstdint>

#include "quantization/cpu/clip_error.h"

namespace pith {
namespace {

constexpr int64_t kClipChunk = 32;  // values that are added together
constexpr int64_t kClipLook = 128;  // values between two looks at the limit, whose outcome no branch predictor guesses

typedef float ClipQuad __attribute__((vector_size(16)));

// Four floats per operation, without flags for any instruction set.
struct FourLanes {
  typedef float Floats __attribute__((vector_size(16)));
  typedef int32_t Ints __attribute__((vector_size(16)));
  static constexpr int64_t kCount = 4;
  static Floats Load(const float* values) {
    Floats lanes;
    __builtin_memcpy(&lanes, values, sizeof(lanes));
    return lanes;
  }
  static Floats Broadcast(float value) { return Floats{value, value, value, value}; }
  static Floats Min(Floats a, Floats b) { return a < b ? a : b; }
  static Floats Max(Floats a, Floats b) { return a > b ? a : b; }
};

// Nearest integer, ties to even, for |a| < 2^22: the addition rounds at the last bit of 1.5 * 2^23.
template <typename L> typename L::Floats RoundLanes(typename L::Floats a) {
  const typename L::Floats magic = L::Broadcast(12582912.0f);
  return (a + magic) - magic;
}

// base^exponent for base >= 0, relative error below 5e-5; bases under 2^-126 count as 2^-127, and results are kept within 2^-126 to 2^127.
// 2^(exponent * log2 base): log2(1 + m) is m times a polynomial on [0, 1], 2^f one on [-1/2, 1/2] (Chebyshev fits).
template <typename L> typename L::Floats PowerLanes(typename L::Floats base, typename L::Floats exponent) {
  using Floats = typename L::Floats;
  using Ints = typename L::Ints;
  const Ints bits = __builtin_bit_cast(Ints, base);
  const Floats whole = __builtin_convertvector((bits >> 23) - 127, Floats);
  const Floats m = __builtin_bit_cast(Floats, (bits & 0x007FFFFF) | 0x3F800000) - 1.0f;
  const Floats log2_over_m = ((((m * -0.03459521f + 0.14643362f) * m - 0.30338967f) * m + 0.4693016f) * m - 0.72044235f) * m + 1.44268322f;
  const Floats y = L::Min(L::Max((whole + m * log2_over_m) * exponent, L::Broadcast(-126.0f)), L::Broadcast(127.0f));
  const Floats rounded = RoundLanes<L>(y);
  const Floats f = y - rounded;
  const Floats fraction = (((f * 0.009676037f + 0.05592203f) * f + 0.24022107f) * f + 0.69312102f) * f + 1.0f;
  return __builtin_bit_cast(Floats, __builtin_bit_cast(Ints, fraction) + (__builtin_convertvector(rounded, Ints) << 23));
}

// The parameters, one value per lane.
template <typename L> struct ClipLanes {
  using Floats = typename L::Floats;
  using Ints = typename L::Ints;

  explicit ClipLanes(const ClipErrorParams& p)
      : inverse_scale(L::Broadcast(p.inverse_scale)),
        zero_point(L::Broadcast(p.zero_point)),
        min_code(L::Broadcast(p.min_code)),
        max_code(L::Broadcast(p.max_code)),
        exponent(L::Broadcast(p.exponent)) {}

  Floats Error(Floats values) const {
    const Floats scaled = values * inverse_scale + zero_point;
    const Floats error = RoundLanes<L>(L::Min(L::Max(scaled, min_code), max_code)) - scaled;
    return PowerLanes<L>(__builtin_bit_cast(Floats, __builtin_bit_cast(Ints, error) & 0x7FFFFFFF), exponent);
  }

  Floats inverse_scale, zero_point, min_code, max_code, exponent;
};

// Errors of kClipChunk values.
template <typename L, bool kWeighted>
void ClipChunkErrors(const ClipLanes<L>& lanes, const float* values, const float* importance, float* errors) {
  for (int64_t i = 0; i < kClipChunk; i += L::kCount) {
    typename L::Floats error = lanes.Error(L::Load(values + i));
    if constexpr (kWeighted) error = error * L::Load(importance + i);
    __builtin_memcpy(errors + i, &error, sizeof(error));
  }
}

inline ClipQuad ClipQuadAt(const float* errors, int64_t quad) {
  ClipQuad lanes;
  __builtin_memcpy(&lanes, errors + 4 * quad, sizeof(lanes));
  return lanes;
}

inline double ClipQuadSum(ClipQuad a) { return static_cast<double>((a[0] + a[2]) + (a[1] + a[3])); }

template <typename L, bool kWeighted> double ClipErrorSum(const ClipErrorParams& p) {
  const ClipLanes<L> lanes(p);
  alignas(64) float errors[kClipChunk];
  double sum = 0;
  int64_t i = 0;
  for (; i + kClipChunk <= p.count; i += kClipChunk) {
    ClipChunkErrors<L, kWeighted>(lanes, p.values + i, kWeighted ? p.importance + i : nullptr, errors);
    const ClipQuad even = ((ClipQuadAt(errors, 0) + ClipQuadAt(errors, 2)) + ClipQuadAt(errors, 4)) + ClipQuadAt(errors, 6);
    const ClipQuad odd = ((ClipQuadAt(errors, 1) + ClipQuadAt(errors, 3)) + ClipQuadAt(errors, 5)) + ClipQuadAt(errors, 7);
    sum += ClipQuadSum(even + odd);
    if ((i + kClipChunk) % kClipLook == 0 && sum > p.limit) return sum;
  }
  if (i == p.count) return sum;
  // Padded with zeros, which are coded exactly; four at a time, so that the padding of a wider vector is not added.
  float values[kClipChunk] = {}, importance[kClipChunk] = {};
  for (int64_t j = i; j < p.count; ++j) {
    values[j - i] = p.values[j];
    if constexpr (kWeighted) importance[j - i] = p.importance[j];
  }
  ClipChunkErrors<L, kWeighted>(lanes, values, importance, errors);
  ClipQuad rest = ClipQuadAt(errors, 0);
  for (int64_t quad = 1; i + 4 * quad < p.count; ++quad) rest += ClipQuadAt(errors, quad);
  return sum + ClipQuadSum(rest);
}

template <typename L> double ClipErrorOf(const ClipErrorParams& p) {
  return p.importance == nullptr ? ClipErrorSum<L, false>(p) : ClipErrorSum<L, true>(p);
}

}  // namespace
}  // namespace pith
