// Probes of AVX2: f32 FMA, the maddubs + madd + add of int8 products without VNNI, and reads of 32 bytes.
#include <immintrin.h>

#include "kernels/cpu/probe_chains.h"
#include "kernels/cpu/probe_tables.h"

namespace pith {
namespace {

int64_t MultiplyF32(int64_t steps) {
  __m256 sum[kChains];
  for (__m256& chain : sum) chain = _mm256_setzero_ps();
  __m256 factor = _mm256_set1_ps(1.0f);
  for (int64_t i = 0; i < steps; ++i) {
    asm volatile("" : "+x"(factor));
#pragma GCC unroll 12
    for (__m256& chain : sum) chain = _mm256_fmadd_ps(factor, factor, chain);
  }
  return SumOfLanes<float>(sum);
}

// Every product has its own pair of operands, so that none is computed once for several chains.
int64_t MultiplyInt8(int64_t steps) {
  __m256i sum[kChains];
  for (__m256i& chain : sum) chain = _mm256_setzero_si256();
  __m256i a[3], b[4];
  for (__m256i& x : a) x = _mm256_set1_epi8(1);
  for (__m256i& x : b) x = _mm256_set1_epi8(1);
  const __m256i ones = _mm256_set1_epi16(1);
  for (int64_t i = 0; i < steps; ++i) {
    asm volatile("" : "+x"(a[0]), "+x"(a[1]), "+x"(a[2]), "+x"(b[0]), "+x"(b[1]), "+x"(b[2]), "+x"(b[3]));
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) {
      sum[c] = _mm256_add_epi32(sum[c], _mm256_madd_epi16(_mm256_maddubs_epi16(a[c / 4], b[c % 4]), ones));
    }
  }
  return SumOfLanes<int32_t>(sum);
}

uint64_t Read(const uint8_t* data, int64_t bytes) {
  __m256i sum[4];
  for (__m256i& lane : sum) lane = _mm256_setzero_si256();
  for (int64_t i = 0; i < bytes; i += 128) {
    for (int64_t line = 0; line < 128; line += 64) __builtin_prefetch(data + i + line + kReadAheadBytes, 0, 2);
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) sum[v] = _mm256_xor_si256(sum[v], _mm256_load_si256(reinterpret_cast<const __m256i*>(data + i + 32 * v)));
  }
  uint64_t words[4];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(words),
                      _mm256_xor_si256(_mm256_xor_si256(sum[0], sum[1]), _mm256_xor_si256(sum[2], sum[3])));
  return words[0] ^ words[1] ^ words[2] ^ words[3];
}

}  // namespace

const ProbeEntry kProbes__avx2[] = {
    {.name = "probe_f32_f32_f32__avx2",
     .isa = KernelIsa::kAvx2,
     .limit = ProbeLimit::kF32,
     .multiply_adds_per_step = kChains * 8,
     .multiply = MultiplyF32},
    {.name = "probe_u8_s8_s32__avx2",
     .isa = KernelIsa::kAvx2,
     .limit = ProbeLimit::kInt8,
     .multiply_adds_per_step = kChains * 32,
     .multiply = MultiplyInt8},
    {.name = "probe_read_u8__avx2", .isa = KernelIsa::kAvx2, .limit = ProbeLimit::kRead, .read = Read},
};
const size_t kNumProbes__avx2 = sizeof(kProbes__avx2) / sizeof(kProbes__avx2[0]);

}  // namespace pith
