// What one thread of this machine can do, measured beside a benchmark so that its rate can be given as a share of the limit: the multiply
// instruction of a kernel row, and a plain read of a buffer. Unlike cli/machine_limits.h, whose pools and wall clock are those of a whole
// pass, seconds here are CPU time of the one thread and the best of a few runs, as the rates of the benchmarks are, so that other processes
// disturb little.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>

#include "base/cpu_features.h"
#include "kernels/multiply.h"
#include "kernels/probes.h"

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

// Operations per second of one thread with the widest instruction of this kind up to `isa`, best of five short runs; a multiply-add is two.
// 0 where there is none.
inline double PeakPerSecond(ProbeLimit limit, Isa isa) {
  const ProbeEntry* probe = FindProbe(limit, isa);
  if (probe == nullptr) return 0.0;
  constexpr int64_t kSteps = 100000;
  double best = 0.0;
  for (int i = 0; i < 5; ++i) {
    int64_t multiply_adds = 0;
    const double seconds = SecondsOf([&] { multiply_adds = probe->multiply(kSteps); });
    best = std::max(best, 2.0 * static_cast<double>(multiply_adds) / seconds);
  }
  return best;
}

// The same of an operator that multiplies so. 0 where the row multiplies nothing.
inline double PeakPerSecond(const KernelMultiply& multiply, KernelIsa isa) {
  return multiply.passes > 0 ? PeakPerSecond(multiply.limit, static_cast<Isa>(isa)) / multiply.passes : 0.0;
}

// Read rate of one thread over `bytes` (a multiple of 256) of a 64-byte aligned buffer read before, best of three passes.
inline double ReadBytesPerSecond(const uint8_t* buffer, int64_t bytes) {
  const ProbeEntry* probe = FindProbe(ProbeLimit::kRead, DetectIsa());
  const int64_t repeats = std::max<int64_t>(1, (int64_t{4} << 20) / bytes);  // at least 4 MiB per timing
  double best = 1e9;
  volatile uint64_t sink = 0;
  for (int pass = 0; pass < 4; ++pass) {
    const double seconds = SecondsOf([&] {
      for (int64_t r = 0; r < repeats; ++r) sink = probe->read(buffer, bytes);
    });
    if (pass > 0) best = std::min(best, seconds);
  }
  return static_cast<double>(bytes * repeats) / best;
}

}  // namespace pith
