// Probes of the baseline CPU: what plain C++ reaches.
#include "kernels/cpu/probe_chains.h"
#include "kernels/cpu/probe_tables.h"

namespace pith {
namespace {

constexpr int kLanes = 32;  // independent sums

int64_t MultiplyF32(int64_t steps) {
  float sum[kLanes] = {}, factor = 1.0f;
  for (int64_t i = 0; i < steps; ++i) {
    asm volatile("" : "+m"(factor));
    for (float& lane : sum) lane += factor * factor;
  }
  int64_t total = 0;
  for (const float lane : sum) total += static_cast<int64_t>(lane);
  return total;
}

int64_t MultiplyInt8(int64_t steps) {
  int32_t sum[kLanes] = {};
  uint8_t codes[kLanes];
  int8_t factors[kLanes];
  for (uint8_t& code : codes) code = 1;
  for (int8_t& factor : factors) factor = 1;
  for (int64_t i = 0; i < steps; ++i) {
    asm volatile("" : "+m"(codes), "+m"(factors));
    for (int lane = 0; lane < kLanes; ++lane) sum[lane] += codes[lane] * factors[lane];
  }
  int64_t total = 0;
  for (const int32_t lane : sum) total += lane;
  return total;
}

uint64_t Read(const uint8_t* data, int64_t bytes) {
  uint64_t sum[8] = {};
  for (int64_t i = 0; i < bytes; i += 64) {
    __builtin_prefetch(data + i + kReadAheadBytes, 0, 2);
    uint64_t words[8];
    __builtin_memcpy(words, data + i, sizeof(words));
    for (int lane = 0; lane < 8; ++lane) sum[lane] ^= words[lane];
  }
  uint64_t total = 0;
  for (const uint64_t lane : sum) total ^= lane;
  return total;
}

}  // namespace

const ProbeEntry kProbes__scalar[] = {
    {.name = "probe_f32_f32_f32__scalar",
     .isa = KernelIsa::kScalar,
     .limit = ProbeLimit::kF32,
     .multiply_adds_per_step = kLanes,
     .multiply = MultiplyF32},
    {.name = "probe_u8_s8_s32__scalar",
     .isa = KernelIsa::kScalar,
     .limit = ProbeLimit::kInt8,
     .multiply_adds_per_step = kLanes,
     .multiply = MultiplyInt8},
    {.name = "probe_read_u8__scalar", .isa = KernelIsa::kScalar, .limit = ProbeLimit::kRead, .read = Read},
};
const size_t kNumProbes__scalar = sizeof(kProbes__scalar) / sizeof(kProbes__scalar[0]);

}  // namespace pith
