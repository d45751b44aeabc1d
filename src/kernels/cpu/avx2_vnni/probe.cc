// Probe of vpdpbusd on 256 bits.
#include <immintrin.h>

#include "kernels/cpu/avx2_vnni/dot_product.h"
#include "kernels/cpu/probe_chains.h"
#include "kernels/cpu/probe_tables.h"

namespace pith {
namespace {

int64_t MultiplyInt8(int64_t steps) {
  __m256i sum[kChains];
  for (__m256i& chain : sum) chain = _mm256_setzero_si256();
  __m256i factor = _mm256_set1_epi8(1);
  for (int64_t i = 0; i < steps; ++i) {
    asm volatile("" : "+x"(factor));
#pragma GCC unroll 12
    for (__m256i& chain : sum) AddProducts(chain, factor, factor);
  }
  return SumOfLanes<int32_t>(sum);
}

}  // namespace

const ProbeEntry kProbes__avx2_vnni[] = {
    {.name = "probe_u8_s8_s32__avx2_vnni",
     .isa = KernelIsa::kAvx2Vnni,
     .limit = ProbeLimit::kInt8,
     .multiply_adds_per_step = kChains * 32,
     .multiply = MultiplyInt8},
};
const size_t kNumProbes__avx2_vnni = sizeof(kProbes__avx2_vnni) / sizeof(kProbes__avx2_vnni[0]);

}  // namespace pith
