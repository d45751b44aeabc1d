// The walk over rows and heads that the kv_append kernels share, and the scale of a vector. A Format's Store writes one vector's elements
// and, where the format has one, its scale. Internal linkage: every including kernel has its own copy.
#pragma once

#include <cstdint>

#include "kernels/attention.h"

namespace pith {
namespace {

constexpr float kNoCodes = __builtin_inff();  // as a step: all codes are 0

// The stored scale of a vector whose largest magnitude has these bits, and the step to divide by: the scale, or kNoCodes. A *scale above 0
// is a static one and stays.
inline float ScaleOf(uint32_t largest_bits, float largest_code, float* scale) {
  const float largest = __builtin_bit_cast(float, largest_bits);
  if (largest_bits >= 0x7F800000u) {
    *scale = __builtin_nanf("");
    return kNoCodes;
  }
  if (*scale > 0.0f) return *scale;
  *scale = largest < kKvSmallest ? 0.0f : largest / largest_code;
  return largest < kKvSmallest ? kNoCodes : *scale;
}

template <typename Format> void AppendRows(const KvAppendParams& p) {
  const int64_t token_bytes = p.head_dim * KvElementBytes(Format::kDtype);
  const int64_t scales = p.block_size * token_bytes;
  const bool is_static = Format::kDtype == KvDtype::kFp8 && p.key_scales != nullptr;
  for (int64_t row = 0; row < p.num_rows; ++row) {
    const int64_t t = p.first_position + row, slot = t % p.block_size;
    const int64_t block = p.block_table[t / p.block_size] * p.block_stride;
    for (int64_t head = 0; head < p.num_kv_heads; ++head) {
      uint8_t* key = p.key_cache + block + head * p.head_stride;
      uint8_t* value = p.value_cache + block + head * p.head_stride;
      float scale[2] = {is_static ? p.key_scales[head] : 0.0f, is_static ? p.value_scales[head] : 0.0f};
      Format::Store(p.key + row * p.key_stride + head * p.head_dim, p.head_dim, key + slot * token_bytes, &scale[0]);
      Format::Store(p.value + row * p.value_stride + head * p.head_dim, p.head_dim, value + slot * token_bytes, &scale[1]);
      if (KvScaleBytes(Format::kDtype) == 0) continue;
      __builtin_memcpy(key + scales + slot * 4, &scale[0], 4);
      __builtin_memcpy(value + scales + slot * 4, &scale[1], 4);
    }
  }
}

}  // namespace
}  // namespace pith
