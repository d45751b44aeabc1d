#include "nn/gated_mlp.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nn/test_matrix.h"

namespace pith {
namespace {

double Activate(Activation activation, double x) {
  if (activation == Activation::kSilu) return x / (1.0 + std::exp(-x));
  return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
}

void ExpectMatchesDefinition(Activation activation, int64_t m) {
  constexpr int64_t kHidden = 32, kIntermediate = 48;
  const TestMatrix gate = RandomDense("gate", kIntermediate, kHidden, 1), up = RandomDense("up", kIntermediate, kHidden, 2);
  const TestMatrix down = RandomDense("down", kHidden, kIntermediate, 3);
  std::vector<float> gate_bias(kIntermediate, 0.5f);
  ThreadPool pool(2);
  const ComputeContext context = MakeComputeContext(&pool, DetectIsa());
  auto gate_up = Linear::Load({gate.Source(gate_bias), up.Source()}, context);
  ASSERT_TRUE(gate_up.ok()) << gate_up.status();
  auto down_layer = Linear::Load({down.Source()}, context);
  ASSERT_TRUE(down_layer.ok()) << down_layer.status();
  const GatedMlp mlp(*std::move(gate_up), *std::move(down_layer), activation);
  EXPECT_EQ(mlp.intermediate_size(), kIntermediate);

  const std::vector<uint16_t> x = RandomActivations(m * kHidden, 4);
  std::vector<float> scratch(m * 2 * kIntermediate), out(m * kHidden, 5.0f);
  LinearInput input;
  input.Prepare(mlp.down().formats(), m, kIntermediate, /*keep_bf16=*/true);
  mlp.RunGateUp(context, MakeInput(context, mlp.gate_up(), x.data(), m, kHidden), 0, m, scratch.data(), input);
  const uint16_t* activated = input.bf16();
  for (int64_t r = 0; r < m; ++r) {
    for (int64_t i = 0; i < kIntermediate; ++i) {
      const double g = ReferenceDot(gate, i, x.data() + r * kHidden).value + 0.5;
      const double u = ReferenceDot(up, i, x.data() + r * kHidden).value;
      const double expected = Activate(activation, g) * u;
      EXPECT_NEAR(ToFloat(bfloat16{activated[r * kIntermediate + i]}), expected, std::fabs(expected) / 200 + 1e-4) << r << " " << i;
    }
  }
  mlp.RunDown(context, input, m, out.data(), /*accumulate=*/true);
  for (int64_t r = 0; r < m; ++r) {
    for (int64_t o = 0; o < kHidden; ++o) {
      const DotProduct dot = ReferenceDot(down, o, activated + r * kIntermediate);
      EXPECT_NEAR(out[r * kHidden + o], 5.0 + dot.value, dot.magnitude / 4096 + 1e-5);
    }
  }
}

TEST(GatedMlp, MatchesItsDefinition) {
  for (const Activation activation : {Activation::kSilu, Activation::kGeluTanh}) {
    ExpectMatchesDefinition(activation, 1);
    ExpectMatchesDefinition(activation, 300);  // enough rows to be split over the pool
  }
}

}  // namespace
}  // namespace pith
