#include "nn/rms_norm.h"

#include <cmath>

#include "base/float_types.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

class RmsNormTest : public testing::Test {
 protected:
  RmsNorm Make(bool plus_one) {
    const TensorView view{DType::kF32, {3}, reinterpret_cast<const uint8_t*>(weight_.data())};
    return *RmsNorm::Load("norm.weight", view, 3, 0.5f, plus_one);
  }
  // By the definition, in double.
  double Expected(const float* x, int i, double offset) const {
    const double mean = (static_cast<double>(x[0]) * x[0] + static_cast<double>(x[1]) * x[1] + static_cast<double>(x[2]) * x[2]) / 3.0;
    return x[i] / std::sqrt(mean + 0.5) * (weight_[i] + offset);
  }

  const std::vector<float> weight_ = {0.5f, -1.0f, 2.0f};
  const std::vector<float> x_ = {1, 2, 3, 99, -4, 5, 6, 99};  // two rows, four floats apart
  ThreadPool pool_{2};
  const ComputeContext context_ = MakeComputeContext(&pool_, Isa::kScalar);
};

TEST_F(RmsNormTest, WritesContiguousBfloat16) {
  LinearInput input;
  input.Prepare({InputFormat{}}, 2, 3);
  Make(false).Run(context_, x_.data(), 4, 2, input);
  const uint16_t* out = input.bf16();
  for (int r = 0; r < 2; ++r) {
    for (int i = 0; i < 3; ++i) {
      const double expected = Expected(x_.data() + 4 * r, i, 0.0);
      EXPECT_NEAR(ToFloat(bfloat16{out[3 * r + i]}), expected, std::fabs(expected) / 256) << r << i;
    }
  }
}

TEST_F(RmsNormTest, PlusOneAndAccumulate) {
  std::vector<float> out = {10, 20, 30, 77, 40, 50, 60, 77};
  Make(true).RunAccumulate(context_, x_.data(), 2, 4, out.data());
  const double before[] = {10, 20, 30, 77, 40, 50, 60, 77};
  for (int r = 0; r < 2; ++r) {
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(out[4 * r + i], before[4 * r + i] + Expected(x_.data() + 4 * r, i, 1.0), 1e-5);
    EXPECT_EQ(out[4 * r + 3], 77);
  }
}

TEST_F(RmsNormTest, NormalizesHeadsInPlace) {
  std::vector<float> heads = {1, 2, 3, -4, 5, 6};
  const std::vector<float> before = heads;
  Make(false).RunHeads(context_, heads.data(), 2);
  for (int h = 0; h < 2; ++h) {
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(heads[3 * h + i], Expected(before.data() + 3 * h, i, 0.0), 1e-6);
  }
}

TEST_F(RmsNormTest, RefusesAnotherShape) {
  const TensorView view{DType::kF32, {3}, reinterpret_cast<const uint8_t*>(weight_.data())};
  const absl::Status status = RmsNorm::Load("norm.weight", view, 4, 1e-6f, false).status();
  EXPECT_EQ(status.message(), "norm.weight: expected [4], found [3]");
}

}  // namespace
}  // namespace pith
