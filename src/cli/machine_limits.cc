#include "cli/machine_limits.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <vector>

#include "tensor/tensor.h"

namespace pith {
namespace {

// Sum of the 64-bit words of a range; eight independent sums so that the loads, not the additions, are the limit.
uint64_t SumWords(const uint8_t* data, int64_t bytes) {
  uint64_t sum[8] = {};
  for (int64_t i = 0; i + 64 <= bytes; i += 64) {
    uint64_t words[8];
    std::memcpy(words, data + i, sizeof(words));
    for (int lane = 0; lane < 8; ++lane) sum[lane] += words[lane];
  }
  uint64_t total = 0;
  for (const uint64_t lane : sum) total += lane;
  return total;
}

}  // namespace

MachineLimits MeasureMachineLimits(ThreadPool& pool) {
  MachineLimits limits;
  limits.read_bytes = int64_t{512} << 20;
  AlignedBuffer buffer(static_cast<size_t>(limits.read_bytes));
  std::vector<double> samples;
  std::atomic<uint64_t> sink{0};
  for (int repeat = 0; repeat < 6; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    pool.ParallelFor(limits.read_bytes, 64, [&](int64_t begin, int64_t end, int) { sink += SumWords(buffer.data() + begin, end - begin); });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (repeat > 0) samples.push_back(static_cast<double>(limits.read_bytes) / seconds / 1e9);
  }
  std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
  limits.read_gb_per_s = samples[samples.size() / 2];
  return limits;
}

}  // namespace pith
