// Probes of the AVX-512 dot products: vdpbf16ps and vpdpbusd.
#include <immintrin.h>

#include "kernels/cpu/probe_chains.h"
#include "kernels/cpu/probe_tables.h"

namespace pith {
namespace {

int64_t MultiplyBf16(int64_t steps) {
  __m512 sum[kChains];
  for (__m512& chain : sum) chain = _mm512_setzero_ps();
  __m512i factor = _mm512_set1_epi16(0x3F80);  // 1.0
  for (int64_t i = 0; i < steps; ++i) {
    asm volatile("" : "+v"(factor));
#pragma GCC unroll 12
    for (__m512& chain : sum) chain = _mm512_dpbf16_ps(chain, (__m512bh)factor, (__m512bh)factor);
  }
  return SumOfLanes<float>(sum);
}

int64_t MultiplyInt8(int64_t steps) {
  __m512i sum[kChains];
  for (__m512i& chain : sum) chain = _mm512_setzero_si512();
  __m512i factor = _mm512_set1_epi8(1);
  for (int64_t i = 0; i < steps; ++i) {
    asm volatile("" : "+v"(factor));
#pragma GCC unroll 12
    for (__m512i& chain : sum) chain = _mm512_dpbusd_epi32(chain, factor, factor);
  }
  return SumOfLanes<int32_t>(sum);
}

}  // namespace

const ProbeEntry kProbes__avx512_vnni[] = {
    {.name = "probe_bf16_bf16_f32__avx512_vnni",
     .isa = KernelIsa::kAvx512Vnni,
     .limit = ProbeLimit::kBf16,
     .multiply_adds_per_step = kChains * 32,
     .multiply = MultiplyBf16},
    {.name = "probe_u8_s8_s32__avx512_vnni",
     .isa = KernelIsa::kAvx512Vnni,
     .limit = ProbeLimit::kInt8,
     .multiply_adds_per_step = kChains * 64,
     .multiply = MultiplyInt8},
};
const size_t kNumProbes__avx512_vnni = sizeof(kProbes__avx512_vnni) / sizeof(kProbes__avx512_vnni[0]);

}  // namespace pith
