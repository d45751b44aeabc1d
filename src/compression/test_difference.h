// For tests only: how far two vectors are from each other.
#pragma once

#include <cmath>
#include <cstddef>

namespace pith {

// ||found - expected|| / ||expected||
template <typename A, typename B> double RelativeDifference(const A& expected, const B& found) {
  double difference = 0, scale = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(static_cast<double>(expected[i]) - static_cast<double>(found[i]), 2);
    scale += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(difference / scale);
}

}  // namespace pith
