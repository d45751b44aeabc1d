// For tests only: floats that are no numbers, and logits at random.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/random.h"

namespace pith {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Normal with this deviation; with `distinct` > 0 one of so many multiples of spread / 7 instead, so that ties are frequent.
inline std::vector<float> RandomLogits(uint64_t seed, int size, float spread, int distinct = 0) {
  RandomStream random(seed);
  std::vector<float> logits(static_cast<size_t>(size));
  for (float& logit : logits) {
    logit = distinct > 0 ? spread / 7.0f * static_cast<float>(random.Below(static_cast<uint64_t>(distinct))) : spread * random.Normal();
  }
  return logits;
}

}  // namespace pith
