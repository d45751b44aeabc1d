#include "nn/gated_mlp.h"

#include <cmath>
#include <cstring>

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

// One form of the rows of an input, as the bits of its parts.
std::vector<std::vector<uint32_t>> FormOf(const LinearInput& input, const InputFormat& format, int64_t m) {
  std::vector<std::vector<uint32_t>> bits(4);
  const auto append = [&](int part, const auto* values, int64_t count) {
    for (int64_t i = 0; values != nullptr && i < count; ++i) {
      uint32_t word = 0;
      std::memcpy(&word, values + i, sizeof(*values));
      bits[part].push_back(word);
    }
  };
  const int64_t dim = input.dim();
  if (format.kind == GemmActivation::kBf16) append(0, input.bf16(), m * dim);
  if (format.kind == GemmActivation::kFp8) {
    append(0, input.Fp8Values(format, 0), m * dim);
    append(1, input.Fp8Scales(format, 0), m);
  }
  if (format.kind != GemmActivation::kInt16 && format.kind != GemmActivation::kInt8) return bits;
  const IntegerActivation integers = input.Integers(format, 0);
  append(0, integers.high, m * dim);
  append(1, integers.low, m * dim);
  append(2, integers.scale, m * (dim / format.group_size));
  append(3, integers.sum, m * (dim / format.sum_group));
  return bits;
}

// The fused MLP against its steps one after the other: the product of whole matrices, the activation, the conversion of whole rows.
void ExpectBitsOfTheSteps(const TestMatrix& gate, const TestMatrix& up, const TestMatrix& down, WeightOnlyActivation kind) {
  const int64_t dim = down.in, hidden = down.out;
  const std::vector<uint16_t> x = RandomActivations(151 * hidden, 4);
  const std::vector<float> bias(dim, 0.25f);
  for (const Isa isa : ThisCpu().SupportedIsas()) {
    for (const int threads : {1, 3}) {
      ThreadPool pool(threads);
      const ComputeContext context = MakeComputeContext(&pool, isa, kind);
      auto gate_up = Linear::Load({gate.Source(), up.Source(bias)}, context), loaded_down = Linear::Load({down.Source()}, context);
      ASSERT_TRUE(gate_up.ok() && loaded_down.ok());
      const GatedMlp mlp(*std::move(gate_up), *std::move(loaded_down), Activation::kSilu);
      const std::vector<InputFormat>& formats = mlp.down().formats();
      for (const int64_t m : {1, 5, 150}) {
        if (isa == Isa::kScalar && m > 8) break;
        const LinearInput input = MakeInput(context, mlp.gate_up(), x.data(), m + 1, hidden);
        constexpr int64_t kFirst = 1;  // of the rows
        std::vector<float> product(m * 2 * dim), scratch(m * 2 * dim);
        LinearInput expected, fused;
        expected.Prepare(formats, m, dim);
        fused.Prepare(formats, m, dim);
        mlp.gate_up().Run(context, input, kFirst, m, product.data(), 2 * dim);
        context.operators.gated_activation({.gate = product.data(),
                                            .up = product.data() + dim,
                                            .gate_stride = 2 * dim,
                                            .up_stride = 2 * dim,
                                            .out_f32 = product.data(),
                                            .out_stride = 2 * dim,
                                            .num_rows = m,
                                            .dim = dim});
        expected.Store(context, 0, m, product.data(), 2 * dim);
        mlp.RunGateUp(context, input, kFirst, m, scratch.data(), fused);
        for (const InputFormat& format : formats) {
          ASSERT_EQ(FormOf(fused, format, m), FormOf(expected, format, m)) << IsaName(isa) << ", threads " << threads << ", m " << m;
        }
        std::vector<float> a(m * hidden), b(m * hidden);  // the outliers of a row as well
        mlp.RunDown(context, fused, m, a.data(), false);
        mlp.RunDown(context, expected, m, b.data(), false);
        ASSERT_EQ(a, b) << IsaName(isa) << ", threads " << threads << ", m " << m;
      }
    }
  }
}

TEST(GatedMlp, GivesTheBitsOfItsStepsInGroupsOfColumns) {
  constexpr int64_t kHidden = 32;
  for (const int64_t dim : {48, 1056}) {  // 1056: several blocks for 150 rows, 33 groups
    const TestMatrix gate = RandomQuantized("gate", dim, kHidden, 4, 32, TestOffset::kZeroPoint, 1);
    const TestMatrix up = RandomQuantized("up", dim, kHidden, 4, 32, TestOffset::kZeroPoint, 2);
    const TestMatrix other = RandomQuantized("up", dim, kHidden, 8, 16, TestOffset::kMin, 2);  // a matrix of its own
    const TestMatrix grouped = RandomQuantized("down", kHidden, dim, 4, dim == 48 ? 24 : 32, TestOffset::kSymmetric, 3);
    for (const GemmActivation kind : {GemmActivation::kInt16, GemmActivation::kInt8, GemmActivation::kBf16}) {
      ExpectBitsOfTheSteps(gate, up, grouped, kind);
      if (HasFatalFailure()) return;
    }
    ExpectBitsOfTheSteps(gate, other, grouped, {});
    ExpectBitsOfTheSteps(RandomDense("gate", dim, kHidden, 4), RandomDense("up", dim, kHidden, 5), RandomDense("down", kHidden, dim, 6),
                         {});
  }
}

TEST(GatedMlp, GivesTheBitsOfItsStepsWhereRowsAreStoredWhole) {
  constexpr int64_t kHidden = 32, kDim = 1056;
  const TestMatrix gate = RandomQuantized("gate", kDim, kHidden, 8, kHidden, TestOffset::kSymmetric, 1);
  const TestMatrix up = RandomQuantized("up", kDim, kHidden, 8, kHidden, TestOffset::kSymmetric, 2);
  TestMatrix int8 = RandomQuantized("down", kHidden, kDim, 8, kDim, TestOffset::kSymmetric, 3),
             fp8 = RandomFp8("down", kHidden, kDim, 32, 4);
  ExpectBitsOfTheSteps(gate, up, int8, {GemmActivation::kInt8, 6.0f});
  const QuantizationArgs per_token{.strategy = QuantizationStrategy::kToken, .dynamic = true};
  int8.input = InputQuantization{per_token};
  ExpectBitsOfTheSteps(gate, up, int8, {});
  fp8.input = InputQuantization{per_token};
  fp8.input->args.type = QuantizationType::kFloat;
  ExpectBitsOfTheSteps(gate, up, fp8, {});
}

TEST(GatedMlp, GivesTheBitsOfItsStepsWhereGateAndUpShareAPanel) {
  for (const int64_t dim : {24, 40}) {
    ExpectBitsOfTheSteps(RandomDense("gate", dim, 32, 1), RandomDense("up", dim, 32, 2), RandomDense("down", 32, dim, 3), {});
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
