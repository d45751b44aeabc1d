// What the probes share. Internal linkage: every including probe has its own copy.
#pragma once

#include <cstdint>

namespace pith {
namespace {

constexpr int kChains = 12;  // independent sums: more than latency times instructions per cycle

// How far ahead of its loads a read probe fetches into the level-2 cache. Without it two threads leave a third of the bandwidth unused
// that kernels, which prefetch as well, do reach: a limit must not be lower than what is compared with it.
constexpr int64_t kReadAheadBytes = 2048;

// The sum of all lanes of all chains, which counts the multiply-adds done.
template <typename Lane, typename Vector> int64_t SumOfLanes(const Vector (&chains)[kChains]) {
  int64_t total = 0;
  for (const Vector& chain : chains) {
    Lane lanes[sizeof(Vector) / sizeof(Lane)];
    __builtin_memcpy(lanes, &chain, sizeof(Vector));
    for (const Lane lane : lanes) total += static_cast<int64_t>(lane);
  }
  return total;
}

}  // namespace
}  // namespace pith
