#include "sampling/cdf_inversion.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "sampling/sampler.h"

namespace pith {
namespace {

constexpr size_t kBlock = 256;  // tokens whose weights are summed before they are looked at one by one
constexpr size_t kLanes = 16;   // independent sums, so that the compiler keeps them in vector registers

// exp(x) for x in (-85, 0], 0 for less and for NaN: 2^n * 2^f with n the nearest integer to x / ln 2 and the series of 2^f to its sixth
// power, whose rest is 1.2e-7 of it at most. Neither branches nor compares floats, so that GCC vectorizes loops over it.
inline float Weight(float x) {
  constexpr int32_t kLimit = std::bit_cast<int32_t>(85.0f);
  const auto bits = std::bit_cast<int32_t>(x);
  const int32_t mask = -static_cast<int32_t>((bits & INT32_MAX) < kLimit);
  const float y = std::bit_cast<float>(bits & mask) * 1.44269504f;
  const auto n = static_cast<int32_t>(y - 0.5f);  // towards zero
  const float f = y - static_cast<float>(n);
  float power = 1.54035304e-4f;
  power = power * f + 1.33335581e-3f;
  power = power * f + 9.61812911e-3f;
  power = power * f + 5.55041087e-2f;
  power = power * f + 2.40226507e-1f;
  power = power * f + 6.93147181e-1f;
  power = power * f + 1.0f;
  return std::bit_cast<float>((std::bit_cast<int32_t>(power) + n * (1 << 23)) & mask);
}

double SumOfWeights(absl::Span<const float> logits, float largest) {
  float row[kBlock], lane[kLanes] = {};
  std::fill(std::copy(logits.begin(), logits.end(), row), row + kBlock, -std::numeric_limits<float>::infinity());
  for (size_t i = 0; i < kBlock; ++i) row[i] = Weight(row[i] - largest);
  for (size_t i = 0; i < kBlock; i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) lane[j] += row[i + j];
  }
  double sum = 0;
  for (const float value : lane) sum += static_cast<double>(value);
  return sum;
}

}  // namespace

int32_t DrawByInversion(absl::Span<const float> logits, double uniform) {
  const int32_t best = ArgMax(logits);
  if (best < 0 || !std::isfinite(logits[best])) return -1;
  const float largest = logits[best];
  std::vector<double> sums;
  sums.reserve(logits.size() / kBlock + 1);
  double total = 0;
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    sums.push_back(SumOfWeights(logits.subspan(begin, kBlock), largest));
    total += sums.back();
  }
  double rest = uniform * total;
  size_t block = 0;
  while (block + 1 < sums.size() && rest >= sums[block]) rest -= sums[block++];
  // Weights one by one sum to a little more or less than in lanes: what is left after the last token belongs to it.
  int32_t token = best;
  const size_t begin = block * kBlock, end = std::min(begin + kBlock, logits.size());
  for (size_t i = begin; i < end; ++i) {
    const auto weight = static_cast<double>(Weight(logits[i] - largest));
    if (weight == 0) continue;
    token = static_cast<int32_t>(i);
    if (rest < weight) break;
    rest -= weight;
  }
  return token;
}

}  // namespace pith
