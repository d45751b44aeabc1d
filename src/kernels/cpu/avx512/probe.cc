// Probes of AVX-512: f32 FMA, int8 products without VNNI, and reads of 64 bytes.
#include <immintrin.h>

#include "kernels/cpu/probe_chains.h"
#include "kernels/cpu/probe_tables.h"

namespace pith {
namespace {

int64_t MultiplyF32(int64_t steps) {
  __m512 sum[kChains];
  for (__m512& chain : sum) chain = _mm512_setzero_ps();
  __m512 factor = _mm512_set1_ps(1.0f);
  for (int64_t i = 0; i < steps; ++i) {
    asm volatile("" : "+v"(factor));
#pragma GCC unroll 12
    for (__m512& chain : sum) chain = _mm512_fmadd_ps(factor, factor, chain);
  }
  return SumOfLanes<float>(sum);
}

// Every product has its own pair of operands, so that none is computed once for several chains.
int64_t MultiplyInt8(int64_t steps) {
  __m512i sum[kChains];
  for (__m512i& chain : sum) chain = _mm512_setzero_si512();
  __m512i a[3], b[4];
  for (__m512i& x : a) x = _mm512_set1_epi8(1);
  for (__m512i& x : b) x = _mm512_set1_epi8(1);
  const __m512i ones = _mm512_set1_epi16(1);
  for (int64_t i = 0; i < steps; ++i) {
    asm volatile("" : "+v"(a[0]), "+v"(a[1]), "+v"(a[2]), "+v"(b[0]), "+v"(b[1]), "+v"(b[2]), "+v"(b[3]));
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) {
      sum[c] = _mm512_add_epi32(sum[c], _mm512_madd_epi16(_mm512_maddubs_epi16(a[c / 4], b[c % 4]), ones));
    }
  }
  return SumOfLanes<int32_t>(sum);
}

uint64_t Read(const uint8_t* data, int64_t bytes) {
  __m512i sum[4];
  for (__m512i& lane : sum) lane = _mm512_setzero_si512();
  for (int64_t i = 0; i < bytes; i += 256) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      __builtin_prefetch(data + i + 64 * v + kReadAheadBytes, 0, 2);
      sum[v] = _mm512_xor_si512(sum[v], _mm512_load_si512(data + i + 64 * v));
    }
  }
  uint64_t words[8], total = 0;
  _mm512_storeu_si512(words, _mm512_xor_si512(_mm512_xor_si512(sum[0], sum[1]), _mm512_xor_si512(sum[2], sum[3])));
  for (const uint64_t word : words) total ^= word;
  return total;
}

}  // namespace

const ProbeEntry kProbes__avx512[] = {
    {.name = "probe_f32_f32_f32__avx512",
     .isa = KernelIsa::kAvx512,
     .limit = ProbeLimit::kF32,
     .multiply_adds_per_step = kChains * 16,
     .multiply = MultiplyF32},
    {.name = "probe_u8_s8_s32__avx512",
     .isa = KernelIsa::kAvx512,
     .limit = ProbeLimit::kInt8,
     .multiply_adds_per_step = kChains * 64,
     .multiply = MultiplyInt8},
    {.name = "probe_read_u8__avx512", .isa = KernelIsa::kAvx512, .limit = ProbeLimit::kRead, .read = Read},
};
const size_t kNumProbes__avx512 = sizeof(kProbes__avx512) / sizeof(kProbes__avx512[0]);

}  // namespace pith
