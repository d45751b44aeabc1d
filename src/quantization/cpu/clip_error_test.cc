#include "quantization/cpu/clip_error.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/cpu_features.h"
#include "base/random.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Implementation {
  std::string name;
  ClipErrorFunction function;
};

// Those that run here besides the scalar one.
std::vector<Implementation> OtherImplementations() {
  std::vector<Implementation> found;
  if (ThisCpu().Supports(Isa::kAvx2)) found.push_back({"avx2", clip_error_f32__avx2});
  if (ThisCpu().Supports(Isa::kAvx512)) found.push_back({"avx512", clip_error_f32__avx512});
  return found;
}

struct Group {
  Group(size_t count, float magnitude, uint64_t seed) : values(count), importance(count) {
    RandomStream random(seed);
    for (float& value : values) value = random.Normal() * magnitude;
    for (float& value : importance) value = random.Below(5) == 0 ? 0.0f : static_cast<float>(random.Uniform());
  }
  // Signed 4-bit codes of a range that about one value in a hundred exceeds.
  ClipErrorParams Params(bool weighted, float magnitude, double limit = kInfinity) const {
    return {.values = values.data(),
            .importance = weighted ? importance.data() : nullptr,
            .count = static_cast<int64_t>(values.size()),
            .inverse_scale = 3.0f / magnitude,
            .zero_point = -1,
            .min_code = -8,
            .max_code = 7,
            .exponent = 2.4f,
            .limit = limit};
  }
  std::vector<float> values, importance;
};

double SlowError(const ClipErrorParams& p) {
  double sum = 0;
  for (int64_t i = 0; i < p.count; ++i) {
    const float scaled = p.values[i] * p.inverse_scale + p.zero_point;
    const double code = std::nearbyint(static_cast<double>(std::clamp(scaled, p.min_code, p.max_code)));
    const double error = std::pow(std::fabs(code - static_cast<double>(scaled)), static_cast<double>(p.exponent));
    sum += error * (p.importance == nullptr ? 1.0 : static_cast<double>(p.importance[i]));
  }
  return sum;
}

TEST(ClipErrorKernel, ScalarIsThePowerSum) {
  for (const bool weighted : {false, true}) {
    for (const size_t count : {1, 3, 4, 31, 32, 33, 64, 100}) {
      const Group group(count, 0.02f, count);
      const ClipErrorParams params = group.Params(weighted, 0.02f);
      const double slow = SlowError(params);
      EXPECT_NEAR(clip_error_f32__scalar(params), slow, 1e-4 * slow + 1e-6) << count;
    }
  }
}

TEST(ClipErrorKernel, SameBitsWithAnyInstructionSet) {
  for (const Implementation& other : OtherImplementations()) {
    for (const bool weighted : {false, true}) {
      for (const float magnitude : {1e-30f, 0.02f, 1.0f, 1e20f}) {
        for (size_t count = 0; count <= 140; ++count) {
          const Group group(count, magnitude, count + 1);
          const ClipErrorParams params = group.Params(weighted, magnitude);
          ASSERT_EQ(other.function(params), clip_error_f32__scalar(params)) << other.name << " " << count << " " << magnitude;
        }
      }
    }
  }
}

TEST(ClipErrorKernel, SameBitsOfZerosTiesAndOutliers) {
  for (const Implementation& other : OtherImplementations()) {
    Group group(75, 1.0f, 7);
    for (size_t i = 0; i < group.values.size(); i += 5) group.values[i] = 0.0f;
    for (size_t i = 1; i < group.values.size(); i += 5) group.values[i] = 0.5f / 3.0f;
    group.values[2] = 3e30f;
    group.values[70] = -1e-40f;
    for (const float exponent : {1.0f, 2.0f, 2.4f, 3.0f}) {
      ClipErrorParams params = group.Params(true, 1.0f);
      params.exponent = exponent;
      ASSERT_EQ(other.function(params), clip_error_f32__scalar(params)) << other.name << " " << exponent;
    }
  }
}

// An error whose power no float holds counts as the largest, not as something small.
TEST(ClipErrorKernel, AHugeErrorStaysHuge) {
  Group group(16, 1.0f, 7);
  group.values[3] = 3e30f;
  ClipErrorParams params = group.Params(false, 1.0f);
  params.exponent = 3.0f;
  EXPECT_GT(clip_error_f32__scalar(params), 1e38);
}

// What is returned past the limit is larger than it, and the same everywhere; at the limit or below it the sum is whole.
TEST(ClipErrorKernel, StopsPastTheLimit) {
  const Group group(200, 0.02f, 3);
  const double whole = clip_error_f32__scalar(group.Params(false, 0.02f));
  for (const double share : {0.0, 0.1, 0.5, 0.99, 1.0, 1.5}) {
    const ClipErrorParams params = group.Params(false, 0.02f, whole * share);
    const double found = clip_error_f32__scalar(params);
    EXPECT_EQ(found > params.limit, share < 1) << share;
    EXPECT_LE(found, whole);
    EXPECT_EQ(found == whole, share > 0.5) << share;
    for (const Implementation& other : OtherImplementations()) EXPECT_EQ(other.function(params), found) << other.name << " " << share;
  }
}

}  // namespace
}  // namespace pith
