// What this machine can do, measured in the same run as whatever is compared with it: other work and the memory's mood move both alike.
#pragma once

#include <cstdint>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/cpu_features.h"
#include "base/json.h"
#include "base/thread_pool.h"
#include "kernels/probe.h"

namespace pith {

// 10^9 operations per second; a multiply-add is two.
double Gops(int64_t multiply_adds, double seconds);

// Rates of one number of threads; bf16_gops is 0 where the instruction set has no such instruction.
struct MachineLimits {
  int threads = 0;
  int64_t read_bytes = 0;    // size of the buffer read
  double read_gb_per_s = 0;  // streaming read of it
  double f32_gops = 0, bf16_gops = 0, int8_gops = 0;

  double gops(ProbeLimit limit) const;
};

// Takes samples of the limits with the widest instructions up to `isa`; single use of the pool while sampling.
class MachineProbe {
 public:
  // The read goes over a buffer of `working_set_bytes` (the weights a pass streams; at least 1 MiB, at most 4 GiB), so that a set that
  // fits into a cache is compared with that cache. May throw std::bad_alloc.
  MachineProbe(ThreadPool& pool, Isa isa, int64_t working_set_bytes);

  // One sample of every limit: the fastest of a few passes over the buffer in a row (the first ones find threads and memory asleep, and
  // a limit must not be lower than what is compared with it), and about a millisecond per instruction.
  void Sample();
  void Clear();  // forgets the samples
  // Medians of the samples so far.
  MachineLimits limits() const;

 private:
  double ReadSeconds();
  double MultiplyGops(const ProbeEntry& row);

  ThreadPool& pool_;
  const Isa isa_;
  AlignedBuffer buffer_;
  std::vector<double> read_, f32_, bf16_, int8_;
};

// `samples` samples after one that warms up.
MachineLimits MeasureMachineLimits(ThreadPool& pool, Isa isa, int64_t working_set_bytes, int samples = 5);

OrderedJson ToJson(const MachineLimits& limits);
// "read 35.4 GB/s over 97.2 MB; f32 233, bf16 467, int8 937 GOPS (2 threads)"
std::string LimitsText(const MachineLimits& limits);

}  // namespace pith
