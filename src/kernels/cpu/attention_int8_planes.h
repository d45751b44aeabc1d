// What the kernels share that multiply an int8 cache in integers: queries and weights as 16-bit fixed point in two planes of 8 bits.
//   query = query_scale * (256 h + l), h and l signed;  weight = weight_scale * (256 h + l), h and l unsigned
// The planes are filled by each instruction set itself. Internal linkage: every including kernel has its own copy.
#pragma once

#include <cstdint>

#include "kernels/cpu/attention_tiles.h"

namespace pith {
namespace {

constexpr float kQuerySteps = 32512.0f;  // 127 * 256: the high plane stays within [-127, 127]
constexpr float kWeightSteps = 65535.0f;
constexpr int64_t kQuads = kAttentionChunk / 4;  // of tokens, whose values vpdpbusd adds

// A query as it lies in tile.query: high plane, low plane, each padded to whole vectors, then where their accumulators start: keys are
// stored plus 128 (vpdpbusd wants one operand unsigned), so with -128 times the sum of the plane.
struct QueryPlanes {
  int8_t* plane[2];
  int32_t* start;  // [2]
};
inline QueryPlanes PlanesOf(const AttentionTile& tile, int64_t query) {
  auto* high = reinterpret_cast<int8_t*>(tile.query + query * tile.query_stride());
  return {{high, high + tile.query_stride()}, reinterpret_cast<int32_t*>(high + 2 * tile.query_stride())};
}

// Numbers x as integers round(x * steps), which stand for x / steps: times `scale`.
struct FixedPoint {
  float scale, steps;
};

// Of a query times the softmax scale `factor`, from the bits of its largest magnitude. One that is not finite has scale NaN and integers 0,
// so all its scores are NaN.
inline FixedPoint FixedPointOfQuery(uint32_t largest_bits, float factor) {
  if (largest_bits >= 0x7F800000) return {__builtin_nanf(""), 0.0f};
  const float largest = __builtin_bit_cast(float, largest_bits);
  if (largest < kKvSmallest) return {0.0f, 0.0f};
  return {largest / kQuerySteps * factor, kQuerySteps / largest};
}

// Of a chunk's weights times value scales, from the largest. `nan`: one of them is.
inline FixedPoint FixedPointOfWeights(float largest, bool nan) {
  const bool zero = largest < kKvSmallest;
  const float scale = zero ? 0.0f : largest * (1.0f / kWeightSteps);
  return {nan ? __builtin_nanf("") : scale, zero ? 0.0f : kWeightSteps / largest};
}

}  // namespace
}  // namespace pith
