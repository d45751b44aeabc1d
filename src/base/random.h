// Counter-based random numbers: Philox4x32-10. A draw is a pure function of (key, counter), so it never depends on what was
// drawn before, beside it, or on which thread. Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".
#pragma once

#include <array>
#include <cstdint>

namespace pith {

// Ten rounds of Philox4x32. Matches the Random123 known-answer tests.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// Two independent uniforms in the open interval (0, 1) from (seed, a, b): (n + 0.5) / 2^52 with n the upper 52 bits of words (0, 1) and
// (2, 3) of Philox4x32({b lo, b hi, a lo, a hi}, seed), so they lie in [2^-53, 1 - 2^-53].
std::array<double, 2> UniformOpenPair(uint64_t seed, uint64_t a, uint64_t b);
// The first of them.
double UniformOpen(uint64_t seed, uint64_t a, uint64_t b);

// A stream of numbers for code that wants one after the other (tests, sampling of calibration data, bootstrap).
class RandomStream {
 public:
  explicit RandomStream(uint64_t seed, uint64_t stream = 0) : seed_(seed), stream_(stream) {}
  double Uniform() { return UniformOpen(seed_, stream_, index_++); }  // (0, 1)
  uint64_t Below(uint64_t bound);                                     // [0, bound), bound > 0, without bias
  float Normal();                                                     // standard normal (Box-Muller)

 private:
  uint64_t seed_, stream_, index_ = 0;
};

}  // namespace pith
