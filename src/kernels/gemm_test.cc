// Every GEMM row with bf16 or fp8 activations of every ISA this CPU has, against sums in double of the exact dequantized weights.
//
// Error model. A row accumulates in f32, so an output's error is a sum of at most k + 2 * groups + 4 roundings, each relative to a
// partial sum bounded by the norm M = sum_k |a_k| (|scale| |code - center| + |offset|) (+ |bias| + |out|), where offset = scale (center -
// zero_point) or scale * center - min is the part some kernels sum apart. e4m3 codes are their values, without an offset. Taken as
// independent and of mean zero, their sum stays below lambda * sqrt(count) * u * M, u = 2^-24, but with probability 2 exp(-lambda^2 / 2)
// (Higham & Mary 2019). lambda = 4. One lost or doubled term is an error of about M / k, far above it.
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/cpu_features.h"
#include "base/float_types.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "kernels/registry.h"
#include "kernels/selection.h"
#include "tensor/tensor.h"

namespace pith {
namespace {

constexpr int64_t kMaxRows = 33;

std::vector<const GemmKernelEntry*> RunnableKernels(GemmWeight weight, const GemmProblem& problem) {
  std::vector<const GemmKernelEntry*> rows;
  for (const GemmKernelEntry* row : AllGemmKernels()) {
    if (row->weight == weight && row->activation == problem.activation && RunsHere(row->isa) && row->can_implement(problem) == nullptr) {
      rows.push_back(row);
    }
  }
  return rows;
}

// One weight matrix with its activations and the exact results.
struct Case {
  GemmProblem problem;
  GemmWeight weight = GemmWeight::kBf16;
  int64_t rows = kMaxRows;
  std::vector<uint16_t> dense, activation;
  std::vector<uint8_t> code, zero_point;
  std::vector<float> scale, min, scale_unit, min_unit, activation_scale, bias, residual;
  std::vector<double> product, norm;  // [rows, n] of sum_k a w and of M

  std::string Name() const {
    return absl::StrCat(weight == GemmWeight::kF8Grouped ? "f8 " : "", GemmActivationName(problem.activation), " n ", problem.n, " k ",
                        problem.k, " group ", problem.group_size, " bits ", problem.bits, problem.has_zero_point ? " zero_point" : "",
                        problem.has_min ? " min" : "", " scale ", static_cast<int>(problem.scale));
  }
};

// A value that GemmScale `type` holds exactly.
float Representable(GemmScale type, float x) {  // not kI8
  if (type == GemmScale::kF16) return ToFloat(ToFloat16(x));
  return type == GemmScale::kBf16 ? RoundToBfloat16(x) : x;
}

void FillWeights(Case* c, RandomStream* random) {
  const GemmProblem& p = c->problem;
  if (p.bits == 16) {
    for (int64_t i = 0; i < p.n * p.k; ++i) c->dense.push_back(ToBfloat16(random->Normal()).bits);
    return;
  }
  for (int64_t i = 0; i < p.n * p.k; ++i) {
    const auto code = static_cast<uint8_t>(random->Below(uint64_t{1} << p.bits));
    const bool nan = c->weight == GemmWeight::kF8Grouped && (code & 0x7F) == 0x7F;
    c->code.push_back(nan ? uint8_t{0x7E} : code);
  }
  const bool units = p.scale == GemmScale::kI8;
  for (int64_t i = 0; units && i < p.n * (p.k / p.unit_size); ++i) {
    c->scale_unit.push_back(ToFloat(ToFloat16(2e-4f * random->Normal())));
    if (p.has_min) c->min_unit.push_back(ToFloat(ToFloat16(1e-3f * random->Normal())));
  }
  for (int64_t i = 0; i < p.n * (p.k / p.group_size); ++i) {
    const auto code = [random] { return static_cast<float>(random->Below(256)) - 128.0f; };
    const int64_t unit = units ? i * p.group_size / p.unit_size : 0;
    c->scale.push_back(units ? code() * c->scale_unit[unit] : Representable(p.scale, 0.01f * random->Normal()));
    if (p.has_min) c->min.push_back(units ? code() * c->min_unit[unit] : Representable(p.scale, 0.05f * random->Normal()));
    if (p.has_zero_point) c->zero_point.push_back(static_cast<uint8_t>(random->Below(uint64_t{1} << p.bits)));
  }
}

// Weight [n][k] in double, and its part in the norm M.
void ExactWeight(const Case& c, int64_t n, int64_t k, double* weight, double* magnitude) {
  const GemmProblem& p = c.problem;
  if (p.bits == 16) {
    *weight = ToFloat(bfloat16{c.dense[n * p.k + k]});
    *magnitude = std::abs(*weight);
    return;
  }
  const int64_t group = n * (p.k / p.group_size) + k / p.group_size;
  if (c.weight == GemmWeight::kF8Grouped) {
    *weight = static_cast<double>(c.scale[group]) * ToFloat(float8_e4m3fn{c.code[n * p.k + k]});
    *magnitude = std::abs(*weight);
    return;
  }
  const double scale = c.scale[group], center = 1 << (p.bits - 1), code = c.code[n * p.k + k];
  const double zero = p.has_zero_point ? c.zero_point[group] : center;
  *weight = p.has_min ? scale * code - c.min[group] : scale * (code - zero);
  const double offset = p.has_min ? scale * center - c.min[group] : scale * (center - zero);
  *magnitude = std::abs(scale * (code - center)) + std::abs(offset);
}

// A unit has two groups where there are as many.
void SetScale(GemmScale type, GemmProblem* problem) {
  problem->scale = type;
  const bool pairs = problem->k / problem->group_size % 2 == 0;
  problem->unit_size = type == GemmScale::kI8 ? problem->group_size * (pairs ? 2 : 1) : 0;
}

Case MakeCase(const GemmProblem& problem, GemmWeight weight_family, uint64_t seed, int64_t rows) {
  Case c;
  c.problem = problem;
  c.weight = weight_family;
  c.rows = rows;
  RandomStream random(seed);
  FillWeights(&c, &random);
  const bool fp8 = problem.activation == GemmActivation::kFp8;
  for (int64_t i = 0; i < rows * problem.k; ++i) {
    const float a = random.Normal();
    c.activation.push_back(ToBfloat16(fp8 ? ToFloat(ToFloat8E4M3(a)) : a).bits);
  }
  for (int64_t r = 0; fp8 && r < rows; ++r) c.activation_scale.push_back(0.5f + random.Uniform());
  for (int64_t n = 0; n < problem.n; ++n) c.bias.push_back(random.Normal());
  for (int64_t i = 0; i < rows * problem.n; ++i) c.residual.push_back(random.Normal());
  c.product.assign(rows * problem.n, 0);
  c.norm.assign(rows * problem.n, 0);
  std::vector<double> weight(problem.k), magnitude(problem.k);
  for (int64_t n = 0; n < problem.n; ++n) {
    for (int64_t k = 0; k < problem.k; ++k) ExactWeight(c, n, k, &weight[k], &magnitude[k]);
    for (int64_t r = 0; r < rows; ++r) {
      double product = 0, norm = 0;
      for (int64_t k = 0; k < problem.k; ++k) {
        const double a = ToFloat(bfloat16{c.activation[r * problem.k + k]});
        product += a * weight[k];
        norm += std::abs(a) * magnitude[k];
      }
      c.product[r * problem.n + n] = product * (fp8 ? c.activation_scale[r] : 1.0f);
      c.norm[r * problem.n + n] = norm * (fp8 ? c.activation_scale[r] : 1.0f);
    }
  }
  return c;
}

Case MakeCase(const GemmProblem& problem, uint64_t seed, int64_t rows = kMaxRows) {
  const GemmWeight family = problem.bits == 16 ? GemmWeight::kBf16 : problem.bits > 4 ? GemmWeight::kW8Grouped : GemmWeight::kW4Grouped;
  return MakeCase(problem, family, seed, rows);
}

// e4m3 weights, the problem's activations.
Case MakeFp8Case(GemmProblem problem, uint64_t seed, int64_t rows = kMaxRows) {
  problem.bits = 8;
  return MakeCase(problem, GemmWeight::kF8Grouped, seed, rows);
}

GemmPrepackParams PrepackParams(const Case& c, uint8_t* out) {
  GemmPrepackParams params;
  params.problem = c.problem;
  params.dense = c.dense.empty() ? nullptr : c.dense.data();
  params.code = c.code.empty() ? nullptr : c.code.data();
  params.scale = c.scale.data();
  params.zero_point = c.zero_point.empty() ? nullptr : c.zero_point.data();
  params.min = c.min.empty() ? nullptr : c.min.data();
  params.scale_unit = c.scale_unit.data();
  params.min_unit = c.min_unit.data();
  params.out = out;
  params.panel_end = (c.problem.n + kGemmPanel - 1) / kGemmPanel;
  return params;
}

// The matrix prepacked for one row, with its calls.
class Prepacked {
 public:
  Prepacked(const Case& c, const GemmKernelEntry* kernel) : case_(c), kernel_(kernel), weight_(kernel->prepack_bytes(c.problem)) {
    kernel->prepack(PrepackParams(c, weight_.data()));
  }
  // Rows [0, m) of the case's activations, dense output [m, n].
  std::vector<float> Run(int64_t m, bool bias = false, bool accumulate = false) const {
    std::vector<float> out(m * case_.problem.n, std::numeric_limits<float>::quiet_NaN());
    if (accumulate) out.assign(case_.residual.begin(), case_.residual.begin() + m * case_.problem.n);
    GemmParams params = Params(case_.activation.data(), case_.problem.k, m, out.data());
    params.bias = bias ? case_.bias.data() : nullptr;
    params.accumulate = accumulate;
    kernel_->run(params);
    return out;
  }
  // `row`: which row of the case the first one is, for its activation scale.
  GemmParams Params(const uint16_t* activation, int64_t stride, int64_t m, float* out, int64_t row = 0) const {
    GemmParams params;
    params.problem = case_.problem;
    params.weight = weight_.data();
    params.activation = activation;
    params.activation_stride = stride;
    params.activation_scale = case_.activation_scale.empty() ? nullptr : case_.activation_scale.data() + row;
    params.m = m;
    params.out = out;
    params.out_stride = case_.problem.n;
    params.panel_end = (case_.problem.n + kGemmPanel - 1) / kGemmPanel;
    return params;
  }

 private:
  const Case& case_;
  const GemmKernelEntry* kernel_;
  AlignedBuffer weight_;
};

void ExpectWithinModel(const Case& c, int64_t m, bool bias, bool accumulate, const std::vector<float>& out, const std::string& what) {
  const GemmProblem& p = c.problem;
  const double groups = p.bits == 16 ? 1.0 : static_cast<double>(p.k / p.group_size);
  const double factor = 4 * std::sqrt(static_cast<double>(p.k) + 2 * groups + 4) * 0x1p-24;
  for (int64_t i = 0; i < m * p.n; ++i) {
    const double extra_bias = bias ? c.bias[i % p.n] : 0, extra_residual = accumulate ? c.residual[i] : 0;
    const double expected = c.product[i] + extra_bias + extra_residual;
    const double tolerance = factor * (c.norm[i] + std::abs(extra_bias) + std::abs(extra_residual)) + 1e-37 * static_cast<double>(p.k);
    ASSERT_NEAR(out[i], expected, tolerance) << what << ", " << c.Name() << ", m " << m << ", row " << i / p.n << ", column " << i % p.n;
  }
}

void ExpectAllKernelsCorrect(const Case& c) {
  const std::vector<const GemmKernelEntry*> kernels = RunnableKernels(c.weight, c.problem);
  ASSERT_FALSE(kernels.empty()) << c.Name();
  for (const GemmKernelEntry* kernel : kernels) {
    const Prepacked prepacked(c, kernel);
    for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33}) {
      if (m > c.rows) break;
      const bool bias = m % 2 == 0, accumulate = m % 3 == 0;
      ExpectWithinModel(c, m, bias, accumulate, prepacked.Run(m, bias, accumulate), kernel->name);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// Bits, so that NaN compares too.
std::vector<uint32_t> Bits(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (const float x : values) bits.push_back(std::bit_cast<uint32_t>(x));
  return bits;
}

constexpr int64_t kColumns[] = {1, 15, 16, 17, 48, 100};

// Per channel and per group; groups that are no multiple of 8, larger than a chunk of k, and many small ones.
struct Grouping {
  int64_t k, group_size;
};
constexpr Grouping kGroupings[] = {{4, 4},   {32, 16},  {36, 4},   {36, 12},   {36, 36},   {60, 20},
                                   {64, 32}, {576, 16}, {576, 64}, {576, 576}, {1040, 520}};

std::vector<GemmProblem> DenseProblems() {
  std::vector<GemmProblem> problems;
  for (const int64_t n : kColumns) {
    for (const int64_t k : {1, 2, 3, 4, 32, 36, 63, 64, 577, 1026, 2050}) problems.push_back({.n = n, .k = k});
  }
  return problems;
}

std::vector<GemmProblem> QuantizedProblems(int bits) {
  std::vector<GemmProblem> problems;
  for (const int64_t n : kColumns) {
    for (const Grouping& grouping : kGroupings) {
      for (const int offset : {0, 1, 2}) {
        GemmProblem problem{.n = n, .k = grouping.k, .group_size = grouping.group_size, .bits = bits};
        problem.has_zero_point = offset == 1;
        problem.has_min = offset == 2;
        SetScale(static_cast<GemmScale>(problems.size() % 4), &problem);
        problems.push_back(problem);
      }
    }
  }
  return problems;
}

std::vector<GemmProblem> Fp8Problems() {
  std::vector<GemmProblem> problems;
  for (const int64_t n : kColumns) {
    for (const Grouping& grouping : kGroupings) {
      for (const GemmActivation activation : {GemmActivation::kBf16, GemmActivation::kFp8}) {
        GemmProblem problem{.n = n, .k = grouping.k, .group_size = grouping.group_size, .bits = 8, .activation = activation};
        SetScale(static_cast<GemmScale>(problems.size() % 4), &problem);
        problems.push_back(problem);
      }
    }
  }
  return problems;
}

// Whatever other activations a row has, the test of the same name in gemm_integer_test.cc asks for it.
TEST(Gemm, EveryRowOfTheTableIsExercised) {
  for (const GemmKernelEntry* row : AllGemmKernels()) {
    if (row->activation == GemmActivation::kInt16 || row->activation == GemmActivation::kInt8) continue;
    bool found = false;
    const auto look = [&](GemmWeight weight, const std::vector<GemmProblem>& problems) {
      for (const GemmProblem& p : problems) {
        found = found || (row->weight == weight && row->activation == p.activation && row->can_implement(p) == nullptr);
      }
    };
    look(GemmWeight::kBf16, DenseProblems());
    look(GemmWeight::kW4Grouped, QuantizedProblems(4));
    look(GemmWeight::kW8Grouped, QuantizedProblems(8));
    look(GemmWeight::kF8Grouped, Fp8Problems());
    EXPECT_TRUE(found) << row->name;
  }
}

int64_t RowsFor(const GemmProblem& problem) { return problem.k > 600 ? 9 : kMaxRows; }

TEST(Gemm, DenseIsWithinTheErrorModel) {
  uint64_t seed = 1;
  for (const GemmProblem& problem : DenseProblems()) {
    ExpectAllKernelsCorrect(MakeCase(problem, seed++, RowsFor(problem)));
    if (HasFatalFailure()) return;
  }
}

class QuantizedGemm : public ::testing::TestWithParam<int> {};  // bits

TEST_P(QuantizedGemm, IsWithinTheErrorModel) {
  uint64_t seed = 1000 * static_cast<uint64_t>(GetParam());
  for (const GemmProblem& problem : QuantizedProblems(GetParam())) {
    ExpectAllKernelsCorrect(MakeCase(problem, seed++, RowsFor(problem)));
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Bits, QuantizedGemm, ::testing::Values(2, 3, 4, 5, 6, 7, 8));

TEST(Gemm, Fp8IsWithinTheErrorModel) {
  uint64_t seed = 20000;
  for (const GemmProblem& problem : Fp8Problems()) {
    ExpectAllKernelsCorrect(MakeFp8Case(problem, seed++, RowsFor(problem)));
    if (HasFatalFailure()) return;
  }
}

TEST(Gemm, LongRowsAreWithinTheErrorModel) {
  for (const GemmProblem& problem :
       {GemmProblem{.n = 17, .k = 8961}, GemmProblem{.n = 17, .k = 8960, .group_size = 8960, .bits = 8},
        GemmProblem{.n = 17, .k = 8960, .group_size = 32, .bits = 4, .has_min = true},
        GemmProblem{.n = 17, .k = 4864, .group_size = 4864, .bits = 4, .has_zero_point = true},
        GemmProblem{.n = 17, .k = 65536, .group_size = 16, .bits = 4, .has_zero_point = true}}) {  // 4096 groups: row blocks of 8
    ExpectAllKernelsCorrect(MakeCase(problem, 77, problem.k > 10000 ? 17 : 9));
  }
  ExpectAllKernelsCorrect(MakeFp8Case({.n = 17, .k = 8960, .group_size = 8960, .activation = GemmActivation::kFp8}, 78, 9));
  ExpectAllKernelsCorrect(MakeFp8Case({.n = 17, .k = 8960, .group_size = 128, .activation = GemmActivation::kFp8}, 79, 9));
}

std::vector<Case> InvarianceCases(int64_t rows) {
  std::vector<Case> cases;
  cases.push_back(MakeCase({.n = 100, .k = 577}, 1, rows));
  cases.push_back(MakeCase({.n = 100, .k = 1216}, 8, rows));
  for (const int bits : {4, 8}) {
    cases.push_back(MakeCase({.n = 100, .k = 576, .group_size = 64, .bits = bits}, 2, rows));
    cases.push_back(MakeCase({.n = 100, .k = 576, .group_size = 36, .bits = bits, .has_zero_point = true}, 3, rows));
    cases.push_back(MakeCase({.n = 100, .k = 576, .group_size = 16, .bits = bits, .has_min = true}, 4, rows));
    cases.push_back(MakeCase({.n = 100, .k = 1200, .group_size = 1200, .bits = bits}, 5, rows));
  }
  for (const GemmActivation activation : {GemmActivation::kBf16, GemmActivation::kFp8}) {
    cases.push_back(MakeFp8Case({.n = 100, .k = 512, .group_size = 128, .activation = activation}, 6, rows));
    cases.push_back(MakeFp8Case({.n = 100, .k = 1200, .group_size = 1200, .activation = activation}, 7, rows));
    cases.push_back(MakeFp8Case({.n = 100, .k = 1216, .group_size = 1216, .activation = activation}, 9, rows));
  }
  return cases;
}

TEST(Gemm, ARowsBitsDoNotDependOnTheNumberOfRows) {
  for (const Case& c : InvarianceCases(150)) {
    for (const GemmKernelEntry* kernel : RunnableKernels(c.weight, c.problem)) {
      const Prepacked prepacked(c, kernel);
      std::vector<uint32_t> alone;
      for (int64_t r = 0; r < c.rows; ++r) {
        std::vector<float> out(c.problem.n);
        kernel->run(prepacked.Params(c.activation.data() + r * c.problem.k, c.problem.k, 1, out.data(), r));
        for (const uint32_t bits : Bits(out)) alone.push_back(bits);
      }
      std::vector<int64_t> sizes = {64, 65, 128, 150};
      for (int64_t m = 1; m <= 33; ++m) sizes.push_back(m);
      for (const int64_t m : sizes) {
        const int64_t first = (7 * m) % (c.rows - m + 1);  // a chunk that starts anywhere
        std::vector<float> out(m * c.problem.n);
        kernel->run(prepacked.Params(c.activation.data() + first * c.problem.k, c.problem.k, m, out.data(), first));
        const auto begin = alone.begin() + first * c.problem.n;
        ASSERT_EQ(Bits(out), std::vector<uint32_t>(begin, begin + m * c.problem.n)) << kernel->name << ", " << c.Name() << ", m " << m;
      }
    }
  }
}

TEST(Gemm, ARowsBitsDoNotDependOnItsNeighbours) {
  const uint16_t poisons[] = {ToBfloat16(std::numeric_limits<float>::quiet_NaN()).bits,
                              ToBfloat16(std::numeric_limits<float>::infinity()).bits, ToBfloat16(-3e38f).bits};
  for (const Case& c : InvarianceCases(kMaxRows)) {
    const int64_t stride = c.problem.k + 3;
    for (const GemmKernelEntry* kernel : RunnableKernels(c.weight, c.problem)) {
      const Prepacked prepacked(c, kernel);
      for (const int64_t m : {1, 2, 5, 8, 9, 12, 33}) {
        const std::vector<float> clean = prepacked.Run(m);
        for (const uint16_t poison : poisons) {
          const int64_t row = m / 2;
          std::vector<uint16_t> activation(m * stride, poison);  // all other rows, and the gaps between rows
          std::copy_n(c.activation.begin() + row * c.problem.k, c.problem.k, activation.begin() + row * stride);
          std::vector<float> out(m * c.problem.n);
          std::vector<float> scale(m, ToFloat(bfloat16{poison}));
          GemmParams params = prepacked.Params(activation.data(), stride, m, out.data());
          if (params.activation_scale != nullptr) {
            scale[row] = c.activation_scale[row];
            params.activation_scale = scale.data();
          }
          kernel->run(params);
          for (int64_t n = 0; n < c.problem.n; ++n) {
            ASSERT_EQ(std::bit_cast<uint32_t>(out[row * c.problem.n + n]), std::bit_cast<uint32_t>(clean[row * c.problem.n + n]))
                << kernel->name << ", " << c.Name() << ", m " << m << ", column " << n;
          }
        }
      }
    }
  }
}

TEST(Gemm, PanelRangesWriteTheirColumnsOnlyAndTheSameBits) {
  for (const Case& c : InvarianceCases(kMaxRows)) {
    const int64_t n = c.problem.n, panels = (n + kGemmPanel - 1) / kGemmPanel, out_stride = n + 5;
    for (const GemmKernelEntry* kernel : RunnableKernels(c.weight, c.problem)) {
      const Prepacked prepacked(c, kernel);
      for (const int64_t m : {1, 3, 8, 33}) {
        const std::vector<float> whole = prepacked.Run(m);
        for (int64_t begin = 0; begin < panels; ++begin) {
          for (int64_t end = begin; end <= panels; ++end) {
            std::vector<float> out(m * out_stride, -7.5f);
            GemmParams params = prepacked.Params(c.activation.data(), c.problem.k, m, out.data());
            params.out_stride = out_stride;
            params.panel_begin = begin;
            params.panel_end = end;
            kernel->run(params);
            for (int64_t i = 0; i < m * out_stride; ++i) {
              const int64_t column = i % out_stride;
              const bool inside = column < n && column >= begin * kGemmPanel && column < end * kGemmPanel;
              ASSERT_EQ(std::bit_cast<uint32_t>(out[i]), std::bit_cast<uint32_t>(inside ? whole[i / out_stride * n + column] : -7.5f))
                  << kernel->name << ", " << c.Name() << ", m " << m << ", panels " << begin << ".." << end << ", column " << column;
            }
            if (begin == end) continue;
            const int64_t first = begin * kGemmPanel, columns = std::min(n, end * kGemmPanel) - first;
            std::vector<float> part(m * columns);
            params.out = part.data();
            params.out_stride = columns;
            params.out_panel = begin;
            kernel->run(params);
            for (int64_t i = 0; i < m * columns; ++i) ASSERT_EQ(part[i], whole[i / columns * n + first + i % columns]) << kernel->name;
          }
        }
      }
    }
  }
}

TEST(Gemm, BiasThenResidualAreOneAdditionEach) {
  for (const Case& c : InvarianceCases(kMaxRows)) {
    for (const GemmKernelEntry* kernel : RunnableKernels(c.weight, c.problem)) {
      const Prepacked prepacked(c, kernel);
      for (const int64_t m : {1, 33}) {
        std::vector<float> expected = prepacked.Run(m);
        const std::vector<float> out = prepacked.Run(m, true, true);
        for (int64_t i = 0; i < m * c.problem.n; ++i) {
          const float with_bias = expected[i] + c.bias[i % c.problem.n];
          ASSERT_EQ(out[i], c.residual[i] + with_bias) << kernel->name << ", " << c.Name();
        }
      }
    }
  }
}

TEST(Gemm, PrepackingByPanelsGivesTheSameBytesAsAtOnce) {
  for (const Case& c : InvarianceCases(1)) {
    for (const GemmKernelEntry* kernel : RunnableKernels(c.weight, c.problem)) {
      const size_t bytes = kernel->prepack_bytes(c.problem);
      AlignedBuffer whole(bytes), parts(bytes);
      kernel->prepack(PrepackParams(c, whole.data()));
      GemmPrepackParams params = PrepackParams(c, parts.data());
      for (int64_t panel = params.panel_end - 1; panel >= 0; --panel) {
        params.panel_begin = panel;
        params.panel_end = panel + 1;
        kernel->prepack(params);
      }
      EXPECT_EQ(std::memcmp(whole.data(), parts.data(), bytes), 0) << kernel->name << ", " << c.Name();
    }
  }
}

TEST(Gemm, DenseRowsReadBack) {
  for (const int64_t k : {1, 6, 77}) {
    const Case c = MakeCase({.n = 35, .k = k}, 8, 1);
    for (const GemmKernelEntry* kernel : RunnableKernels(c.weight, c.problem)) {
      AlignedBuffer packed(kernel->prepack_bytes(c.problem));
      kernel->prepack(PrepackParams(c, packed.data()));
      for (const int64_t n : {0, 15, 16, 34}) {
        std::vector<float> row(k);
        kernel->read_row(c.problem, packed.data(), n, row.data());
        for (int64_t i = 0; i < k; ++i) EXPECT_EQ(row[i], ToFloat(bfloat16{c.dense[n * k + i]})) << kernel->name;
      }
    }
  }
}

// Every e4m3 code that is a number, in every column of a panel: by read_row, and multiplied with 1 alone, from registers and from planes.
TEST(Gemm, EveryFp8CodeIsItsValue) {
  constexpr int64_t kCodes = 254;
  Case c = MakeFp8Case({.n = 17, .k = kCodes, .group_size = kCodes, .activation = GemmActivation::kFp8}, 8, kCodes);
  std::fill(c.scale.begin(), c.scale.end(), 0.5f);
  std::fill(c.activation_scale.begin(), c.activation_scale.end(), 4.0f);
  std::fill(c.activation.begin(), c.activation.end(), uint16_t{0});
  const auto code_at = [](int64_t n, int64_t k) {
    const int64_t i = (k + 31 * n) % kCodes;
    return static_cast<uint8_t>(i < 127 ? i : i + 1);  // without 0x7F; 0xFF is beyond
  };
  for (int64_t k = 0; k < kCodes; ++k) {
    c.activation[k * kCodes + k] = ToBfloat16(1.0f).bits;
    for (int64_t n = 0; n < 17; ++n) c.code[n * kCodes + k] = code_at(n, k);
  }
  for (const GemmKernelEntry* kernel : RunnableKernels(c.weight, c.problem)) {
    const Prepacked prepacked(c, kernel);
    const std::vector<float> all = prepacked.Run(kCodes);
    AlignedBuffer packed(kernel->prepack_bytes(c.problem));
    kernel->prepack(PrepackParams(c, packed.data()));
    for (int64_t n = 0; n < 17; ++n) {
      std::vector<float> row(kCodes);
      kernel->read_row(c.problem, packed.data(), n, row.data());
      for (int64_t k = 0; k < kCodes; ++k) {
        const float value = ToFloat(float8_e4m3fn{code_at(n, k)});
        ASSERT_EQ(row[k], 0.5f * value) << kernel->name << " code " << int{code_at(n, k)};
        ASSERT_EQ(all[k * 17 + n], 2.0f * value) << kernel->name << " code " << int{code_at(n, k)};
      }
    }
    for (int64_t k = 0; k < kCodes; ++k) {
      std::vector<float> out(17);
      kernel->run(prepacked.Params(c.activation.data() + k * kCodes, kCodes, 1, out.data(), k));
      for (int64_t n = 0; n < 17; ++n) ASSERT_EQ(out[n], all[k * 17 + n]) << kernel->name;
    }
  }
}

// Weights of +-1 and 0 and small integer activations: every sum is exact in f32, so all rows must agree to the bit.
TEST(Gemm, ExactSumsAgreeOnEveryIsa) {
  Case c = MakeCase({.n = 33, .k = 96, .group_size = 32, .bits = 4, .has_zero_point = true}, 9);
  RandomStream random(10);
  for (uint16_t& a : c.activation) a = ToBfloat16(static_cast<float>(random.Below(9)) - 4.0f).bits;
  for (float& scale : c.scale) scale = 0.25f;
  std::vector<std::vector<float>> results;
  for (const GemmKernelEntry* kernel : RunnableKernels(c.weight, c.problem)) results.push_back(Prepacked(c, kernel).Run(kMaxRows));
  for (const std::vector<float>& result : results) EXPECT_EQ(result, results.back());
}

}  // namespace
}  // namespace pith
