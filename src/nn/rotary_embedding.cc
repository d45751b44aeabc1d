#include "nn/rotary_embedding.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace pith {
namespace {

// Long wavelengths are divided by `factor`, short ones kept, and those between blended linearly in the number of turns.
void ScaleLlama3(const RopeConfig& config, std::vector<float>& frequency) {
  const float context = static_cast<float>(config.original_max_position);
  const float low = static_cast<float>(config.low_freq_factor), high = static_cast<float>(config.high_freq_factor);
  const float factor = static_cast<float>(config.factor);
  const float longest_kept = context / high, shortest_scaled = context / low;
  for (float& f : frequency) {
    const float wavelength = static_cast<float>(2.0 * std::numbers::pi) / f;
    if (wavelength > shortest_scaled) {
      f = f / factor;
    } else if (wavelength >= longest_kept) {
      const float smooth = (context / wavelength - low) / (high - low);
      f = (1.0f - smooth) * f / factor + smooth * f;
    }
  }
}

// Dimension (of rotary_dim) whose wave turns `rotations` times over the original context.
double YarnDimension(const RopeConfig& config, double rotations, int64_t rotary_dim) {
  const double turns = static_cast<double>(config.original_max_position) / (rotations * 2.0 * std::numbers::pi);
  return static_cast<double>(rotary_dim) * std::log(turns) / (2.0 * std::log(config.theta));
}

void ScaleYarn(const RopeConfig& config, int64_t rotary_dim, const std::vector<float>& power, std::vector<float>& frequency) {
  double low = YarnDimension(config, config.beta_fast, rotary_dim);
  double high = YarnDimension(config, config.beta_slow, rotary_dim);
  if (config.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(rotary_dim - 1));
  if (low == high) high += 0.001;  // as the reference: no division by zero
  for (size_t i = 0; i < frequency.size(); ++i) {
    const float ramp = (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low);
    const float kept = 1.0f - std::clamp(ramp, 0.0f, 1.0f);
    const float interpolated = 1.0f / (static_cast<float>(config.factor) * power[i]);
    frequency[i] = interpolated * (1.0f - kept) + frequency[i] * kept;
  }
}

}  // namespace

std::vector<float> RopeInverseFrequencies(const RopeConfig& config, int64_t rotary_dim) {
  CHECK(rotary_dim > 0 && rotary_dim % 2 == 0);
  std::vector<float> power(rotary_dim / 2), frequency(rotary_dim / 2);
  for (int64_t i = 0; i < rotary_dim / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(rotary_dim);
    power[i] = static_cast<float>(std::pow(static_cast<double>(static_cast<float>(config.theta)), static_cast<double>(exponent)));
    frequency[i] = 1.0f / power[i];
  }
  if (config.scaling == "linear") {
    for (float& f : frequency) f /= static_cast<float>(config.factor);
  } else if (config.scaling == "llama3") {
    ScaleLlama3(config, frequency);
  } else if (config.scaling == "yarn") {
    ScaleYarn(config, rotary_dim, power, frequency);
  } else {
    CHECK(config.scaling == "none");
  }
  return frequency;
}

RotaryEmbedding::RotaryEmbedding(const RopeConfig& config, int64_t rotary_dim, int64_t max_positions)
    : inverse_frequency_(RopeInverseFrequencies(config, rotary_dim)),
      attention_factor_(static_cast<float>(config.attention_factor)),
      rotary_dim_(rotary_dim),
      max_positions_(max_positions) {}

void RotaryEmbedding::Reserve(int64_t num_positions) {
  CHECK(num_positions <= max_positions_);
  if (num_positions <= reserved_) return;
  constexpr int64_t kFirstReserve = 1024;
  const int64_t target = std::min(max_positions_, std::max({num_positions, 2 * reserved_, kFirstReserve}));
  const int64_t half = rotary_dim_ / 2;
  cos_.resize(target * half);
  sin_.resize(target * half);
  for (int64_t position = reserved_; position < target; ++position) {
    for (int64_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(position) * inverse_frequency_[i];
      cos_[position * half + i] = static_cast<float>(std::cos(static_cast<double>(angle))) * attention_factor_;
      sin_[position * half + i] = static_cast<float>(std::sin(static_cast<double>(angle))) * attention_factor_;
    }
  }
  reserved_ = target;
}

void RotaryEmbedding::Run(const ComputeContext& context, float* x, int64_t x_stride, int64_t rows, int64_t num_heads, int64_t head_dim,
                          const int32_t* positions) const {
  context.operators.rotary({.x = x,
                            .x_stride = x_stride,
                            .num_rows = rows,
                            .num_heads = num_heads,
                            .head_dim = head_dim,
                            .rotary_dim = rotary_dim_,
                            .position = positions,
                            .cos = cos_.data(),
                            .sin = sin_.data()});
}

}  // namespace pith
