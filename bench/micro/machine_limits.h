// What one thread of this machine can do, measured beside a benchmark so that its rate can be given as a share of the limit:
// f32 FMA with the widest vectors of an instruction set, and a plain read of a buffer. Seconds are CPU time of the thread, as the rates of
// the benchmarks are, so that other processes disturb little.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstdint>
#include <ctime>

#include "base/cpu_features.h"

namespace pith {

inline double ThreadSeconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <typename F> double SecondsOf(const F& run) {
  const double begin = ThreadSeconds();
  run();
  return ThreadSeconds() - begin;
}

// 12 independent chains of 16 (8) lanes: enough to hide the latency of two FMA units.
__attribute__((target("avx512f"))) inline float FmaChainsAvx512(int64_t steps) {
  __m512 acc[12];
  for (auto& a : acc) a = _mm512_set1_ps(1.0f);
  __m512 factor = _mm512_set1_ps(0.999f);
  for (int64_t i = 0; i < steps; ++i) {
    asm volatile("" : "+v"(factor));
#pragma GCC unroll 12
    for (auto& a : acc) a = _mm512_fmadd_ps(a, factor, factor);
  }
  for (int i = 1; i < 12; ++i) acc[0] = _mm512_add_ps(acc[0], acc[i]);
  return _mm512_cvtss_f32(acc[0]);
}
__attribute__((target("avx2,fma"))) inline float FmaChainsAvx2(int64_t steps) {
  __m256 acc[12];
  for (auto& a : acc) a = _mm256_set1_ps(1.0f);
  __m256 factor = _mm256_set1_ps(0.999f);
  for (int64_t i = 0; i < steps; ++i) {
    asm volatile("" : "+v"(factor));
#pragma GCC unroll 12
    for (auto& a : acc) a = _mm256_fmadd_ps(a, factor, factor);
  }
  for (int i = 1; i < 12; ++i) acc[0] = _mm256_add_ps(acc[0], acc[i]);
  return _mm256_cvtss_f32(acc[0]);
}

// f32 FMA rate of one thread, best of five short runs; `isa` scalar is measured like AVX2. 0 when the CPU has no FMA.
inline double FmaFlopsPerSecond(Isa isa) {
  if (DetectIsa() == Isa::kScalar) return 0.0;
  constexpr int64_t kSteps = 100000;
  const bool wide = isa >= Isa::kAvx512;
  double best = 1e9;
  volatile float sink = 0.0f;
  for (int i = 0; i < 5; ++i) best = std::min(best, SecondsOf([&] { sink = wide ? FmaChainsAvx512(kSteps) : FmaChainsAvx2(kSteps); }));
  return 2.0 * 12.0 * (wide ? 16.0 : 8.0) * kSteps / best;
}

// Read rate of one thread over `bytes` (a multiple of 256) of a buffer read before, best of three passes.
inline double ReadBytesPerSecond(const void* buffer, int64_t bytes) {
  const auto* words = static_cast<const uint64_t*>(buffer);
  const int64_t repeats = std::max<int64_t>(1, (int64_t{4} << 20) / bytes);  // at least 4 MiB per timing
  double best = 1e9;
  volatile uint64_t sink = 0;
  for (int pass = 0; pass < 4; ++pass) {
    const double seconds = SecondsOf([&] {
      __m128i sum[4] = {};
      for (int64_t r = 0; r < repeats; ++r) {
        for (int64_t i = 0; i + 8 <= bytes / 8; i += 8) {
#pragma GCC unroll 4
          for (int v = 0; v < 4; ++v) sum[v] = _mm_xor_si128(sum[v], _mm_loadu_si128(reinterpret_cast<const __m128i*>(words + i + 2 * v)));
        }
        asm volatile("" ::: "memory");
      }
      sink = static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_xor_si128(_mm_xor_si128(sum[0], sum[1]), _mm_xor_si128(sum[2], sum[3]))));
    });
    if (pass > 0) best = std::min(best, seconds);
  }
  return static_cast<double>(bytes * repeats) / best;
}

}  // namespace pith
