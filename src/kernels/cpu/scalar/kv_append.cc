#include <cmath>

#include "kernels/attention.h"
#include "kernels/cpu/kv_append_rows.h"
#include "kernels/cpu/scalar/bf16.h"
#include "kernels/cpu/scalar/fp8.h"

namespace pith {
namespace {

struct Bf16Store {
  static constexpr KvDtype kDtype = KvDtype::kBf16;
  static void Store(const float* in, int64_t head_dim, uint8_t* out, float* /*scale*/) {
    for (int64_t i = 0; i < head_dim; ++i) {
      const uint16_t bits = Bf16FromF32(in[i]);
      __builtin_memcpy(out + 2 * i, &bits, 2);
    }
  }
};

inline uint32_t LargestMagnitude(const float* in, int64_t head_dim) {
  uint32_t largest = 0;  // compared as bits, so that NaN is larger than anything
  for (int64_t i = 0; i < head_dim; ++i) {
    const uint32_t magnitude = __builtin_bit_cast(uint32_t, in[i]) & 0x7FFFFFFFu;
    if (magnitude > largest) largest = magnitude;
  }
  return largest;
}

struct Int8Store {
  static constexpr KvDtype kDtype = KvDtype::kInt8;
  static void Store(const float* in, int64_t head_dim, uint8_t* out, float* scale) {
    const float step = ScaleOf(LargestMagnitude(in, head_dim), 127.0f, scale);
    for (int64_t i = 0; i < head_dim; ++i) {
      const float code = step == kNoCodes ? 0.0f : std::nearbyint(in[i] / step);
      out[i] = static_cast<uint8_t>(static_cast<int8_t>(code > 127.0f ? 127.0f : code < -127.0f ? -127.0f : code));
    }
  }
};

struct Fp8Store {
  static constexpr KvDtype kDtype = KvDtype::kFp8;
  static void Store(const float* in, int64_t head_dim, uint8_t* out, float* scale) {
    const float step = ScaleOf(LargestMagnitude(in, head_dim), 448.0f, scale);
    for (int64_t i = 0; i < head_dim; ++i) out[i] = step == kNoCodes ? 0 : Fp8FromF32(in[i] / step);
  }
};

}  // namespace

void kv_append_f32_bf16__scalar(const KvAppendParams& p) { AppendRows<Bf16Store>(p); }
void kv_append_f32_int8__scalar(const KvAppendParams& p) { AppendRows<Int8Store>(p); }
void kv_append_f32_fp8__scalar(const KvAppendParams& p) { AppendRows<Fp8Store>(p); }

}  // namespace pith
