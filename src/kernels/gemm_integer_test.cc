// Every integer GEMM row of every ISA this CPU has: against sums in double, and bit for bit against each other, because a step's sum is
// exact and scales are applied in one order.
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/cpu_features.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "kernels/quantize_activation.h"
#include "kernels/registry.h"
#include "tensor/tensor.h"

namespace pith {
namespace {

constexpr int64_t kMaxRows = 200;

std::vector<const GemmKernelEntry*> RunnableKernels(const GemmProblem& problem) {
  std::vector<const GemmKernelEntry*> rows;
  for (const GemmKernelEntry* row : AllGemmKernels()) {
    const GemmWeight weight = problem.bits > 4 ? GemmWeight::kW8Grouped : GemmWeight::kW4Grouped;
    if (row->weight == weight && row->activation == problem.activation && RunsHere(row->isa) && row->can_implement(problem) == nullptr) {
      rows.push_back(row);
    }
  }
  return rows;
}

std::string Name(const GemmProblem& p) {
  return absl::StrCat("n ", p.n, " k ", p.k, " groups ", p.group_size, "/", p.activation_group, " bits ", p.bits,
                      p.has_zero_point ? " zero point" : "", p.has_min ? " min" : "",
                      p.activation == GemmActivation::kInt16 ? " int16" : " int8");
}

// A weight matrix and integer activations, drawn over their whole range: the largest sums are as likely as any.
struct Case {
  GemmProblem problem;
  std::vector<uint8_t> code, zero_point;
  std::vector<float> scale, min, scale_unit, min_unit, bias, activation_scale;
  std::vector<int8_t> high, low;
  std::vector<int32_t> sum;

  int32_t Integer(int64_t row, int64_t k) const {
    const int64_t i = row * problem.k + k;
    return low.empty() ? high[i] : 256 * high[i] + low[i];
  }
};

Case MakeCase(const GemmProblem& p, uint64_t seed, bool extreme = false, int64_t rows = kMaxRows) {
  Case c{.problem = p};
  RandomStream random(seed);
  const int64_t groups = p.n * (p.k / p.group_size), last_code = (int64_t{1} << p.bits) - 1;
  for (int64_t i = 0; i < p.n * p.k; ++i) c.code.push_back(static_cast<uint8_t>(extreme ? last_code : random.Below(last_code + 1)));
  const bool has_units = p.scale == GemmScale::kI8;
  for (int64_t i = 0; has_units && i < p.n * (p.k / p.unit_size); ++i) {
    c.scale_unit.push_back(std::ldexp(static_cast<float>(random.Below(2047)) - 1023.0f, -21));  // exact in f16
    c.min_unit.push_back(std::ldexp(static_cast<float>(random.Below(2047)) - 1023.0f, -18));
  }
  for (int64_t i = 0; i < groups; ++i) {
    const auto value = [&](const std::vector<float>& units, int exponent) {
      if (has_units) return (static_cast<float>(random.Below(256)) - 128.0f) * units[i * p.group_size / p.unit_size];
      return std::ldexp(static_cast<float>(random.Below(256)) + 1.0f, exponent);  // exact in the other types
    };
    c.scale.push_back(value(c.scale_unit, -12));
    if (p.has_min) c.min.push_back(value(c.min_unit, -8));
    if (p.has_zero_point) c.zero_point.push_back(static_cast<uint8_t>(extreme ? 0 : random.Below(last_code + 1)));
  }
  for (int64_t i = 0; i < p.n; ++i) c.bias.push_back(random.Normal());
  for (int64_t i = 0; i < rows * p.k; ++i) {
    const int32_t limit = p.activation == GemmActivation::kInt16 ? 32639 : 127;
    const int32_t q = extreme ? -limit : static_cast<int32_t>(random.Below(2 * limit + 1)) - limit;
    const int32_t upper = p.activation == GemmActivation::kInt16 ? (q + 128) >> 8 : q;
    c.high.push_back(static_cast<int8_t>(upper));
    if (p.activation == GemmActivation::kInt16) c.low.push_back(static_cast<int8_t>(q - 256 * upper));
  }
  for (int64_t i = 0; i < rows * (p.k / p.activation_group); ++i) c.activation_scale.push_back(1e-4f * (1.0f + random.Uniform()));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t s = 0; s < p.k; s += p.step()) {
      int32_t sum = 0;
      for (int64_t k = s; k < s + p.step(); ++k) sum += c.Integer(r, k);
      c.sum.push_back(sum);
    }
  }
  return c;
}

class Prepacked {
 public:
  Prepacked(const Case& c, const GemmKernelEntry* kernel) : case_(c), kernel_(kernel), weight_(kernel->prepack_bytes(c.problem)) {
    const GemmProblem& p = c.problem;
    kernel->prepack({.problem = p,
                     .code = c.code.data(),
                     .scale = c.scale.data(),
                     .zero_point = p.has_zero_point ? c.zero_point.data() : nullptr,
                     .min = p.has_min ? c.min.data() : nullptr,
                     .scale_unit = c.scale_unit.data(),
                     .min_unit = c.min_unit.data(),
                     .out = weight_.data(),
                     .panel_end = (p.n + kGemmPanel - 1) / kGemmPanel});
  }
  // Rows [row, row + m), dense output.
  std::vector<float> Run(int64_t row, int64_t m, bool bias = false, bool accumulate = false) const {
    const GemmProblem& p = case_.problem;
    std::vector<float> out(m * p.n, 1.0f);
    GemmParams params = Params(row, m, out);
    params.bias = bias ? case_.bias.data() : nullptr;
    params.accumulate = accumulate;
    kernel_->run(params);
    return out;
  }

  // Columns [16 begin, n) of rows [0, m), in an output of their own.
  std::vector<float> RunFromPanel(int64_t begin, int64_t m) const {
    const int64_t columns = case_.problem.n - begin * kGemmPanel;
    std::vector<float> out(m * columns, 1.0f);
    GemmParams params = Params(0, m, out);
    params.out_stride = columns;
    params.out_panel = params.panel_begin = begin;
    kernel_->run(params);
    return out;
  }

  const uint8_t* weight() const { return weight_.data(); }

 private:
  GemmParams Params(int64_t row, int64_t m, std::vector<float>& out) const {
    const GemmProblem& p = case_.problem;
    return {.problem = p,
            .weight = weight_.data(),
            .integer = {.high = case_.high.data() + row * p.k,
                        .low = case_.low.empty() ? nullptr : case_.low.data() + row * p.k,
                        .stride = p.k,
                        .scale = case_.activation_scale.data() + row * (p.k / p.activation_group),
                        .sum = case_.sum.data() + row * (p.k / p.step())},
            .m = m,
            .out = out.data(),
            .out_stride = p.n,
            .panel_end = (p.n + kGemmPanel - 1) / kGemmPanel};
  }

  const Case& case_;
  const GemmKernelEntry* kernel_;
  AlignedBuffer weight_;
};

// k, weight group, activation group: equal ones, either one longer, long steps of int8, steps that no chunk of k holds whole.
struct Grouping {
  int64_t k, group_size, activation_group;
};
const Grouping kGroupings[] = {{8, 8, 8},       {96, 16, 32},   {96, 32, 32},    {96, 96, 8},      {576, 64, 64},  {576, 576, 96},
                               {640, 128, 128}, {640, 64, 640}, {640, 640, 640}, {1024, 512, 128}, {1200, 40, 40}, {2080, 2080, 2080}};

std::vector<GemmProblem> Problems(int64_t n) {
  std::vector<GemmProblem> problems;
  for (const GemmActivation activation : {GemmActivation::kInt16, GemmActivation::kInt8}) {
    for (const int bits : {2, 4, 6, 8}) {
      for (const Grouping& g : kGroupings) {
        for (const int offset : {0, 1, 2}) {
          GemmProblem p{.n = n, .k = g.k, .group_size = g.group_size, .bits = bits, .has_zero_point = offset == 1, .has_min = offset == 2};
          p.scale = static_cast<GemmScale>(problems.size() % 4);
          if (p.scale == GemmScale::kI8) p.unit_size = g.group_size * (g.k / g.group_size % 4 == 0 ? 4 : 1);
          p.activation = activation;
          p.activation_group = g.activation_group;
          if (!RunnableKernels(p).empty()) problems.push_back(p);
        }
      }
    }
  }
  return problems;
}

// An output is a sum over steps of terms that each take four roundings, and bias and residual one each: the error is at most that many
// half units of the sum of the terms' magnitudes.
void ExpectWithinModel(const Case& c, int64_t row, const std::vector<float>& out, bool bias, const std::string& what) {
  const GemmProblem& p = c.problem;
  for (int64_t n = 0; n < p.n; ++n) {
    double expected = bias ? c.bias[n] : 0, magnitude = std::abs(expected) + 1;
    for (int64_t s = 0; s < p.k / p.step(); ++s) {
      const int64_t g = n * (p.k / p.group_size) + s * p.step() / p.group_size;
      const double a = c.activation_scale[row * (p.k / p.activation_group) + s * p.step() / p.activation_group];
      const double zero = p.has_min ? 0 : p.has_zero_point ? c.zero_point[g] : 1 << (p.bits - 1);
      double sum = 0, sum_q = 0;
      for (int64_t k = s * p.step(); k < (s + 1) * p.step(); ++k) {
        sum += c.Integer(row, k) * (c.code[n * p.k + k] - zero);
        sum_q += c.Integer(row, k);
      }
      const double term = sum * a * c.scale[g], offset = p.has_min ? sum_q * a * c.min[g] : 0;
      expected += term - offset;
      magnitude += std::abs(term) + std::abs(offset);
    }
    const double roundings = 4.0 * static_cast<double>(p.k / p.step()) + 2;
    ASSERT_NEAR(out[n], expected, roundings * 0x1p-24 * magnitude) << what << ", " << Name(p) << ", row " << row << ", column " << n;
  }
}

// Whatever other activations a row has, the test of the same name in gemm_test.cc asks for it.
TEST(IntegerGemm, EveryRowOfTheTableIsExercised) {
  for (const GemmKernelEntry* row : AllGemmKernels()) {
    if (row->activation != GemmActivation::kInt16 && row->activation != GemmActivation::kInt8) continue;
    bool found = false;
    for (const GemmProblem& p : Problems(16)) {
      const GemmWeight weight = p.bits > 4 ? GemmWeight::kW8Grouped : GemmWeight::kW4Grouped;
      found = found || (row->weight == weight && row->activation == p.activation && row->can_implement(p) == nullptr);
    }
    EXPECT_TRUE(found) << row->name;
  }
}

TEST(IntegerGemm, ScalarIsWithinTheErrorModel) {
  for (const GemmProblem& problem : Problems(21)) {
    const Case c = MakeCase(problem, 5);
    const GemmKernelEntry* scalar = RunnableKernels(problem).back();
    ASSERT_EQ(scalar->isa, KernelIsa::kScalar);
    const Prepacked prepacked(c, scalar);
    for (const int64_t row : {0, 7}) {
      ExpectWithinModel(c, row, prepacked.Run(row, 1, row == 7), row == 7, scalar->name);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(IntegerGemm, EveryIsaNumberOfRowsAndPlaceGivesTheBitsOfTheScalarRow) {
  for (const int64_t n : {int64_t{1}, int64_t{16}, int64_t{100}}) {
    for (const GemmProblem& problem : Problems(n)) {
      const Case c = MakeCase(problem, 9);
      const std::vector<const GemmKernelEntry*> kernels = RunnableKernels(problem);
      const Prepacked oracle(c, kernels.back());
      const std::vector<float> expected = oracle.Run(0, n == 100 ? 40 : 20);
      for (const GemmKernelEntry* kernel : kernels) {
        const Prepacked prepacked(c, kernel);
        for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 19}) {
          const int64_t first = (5 * m) % (20 - m + 1);
          const auto begin = expected.begin() + first * n;
          ASSERT_EQ(prepacked.Run(first, m), std::vector<float>(begin, begin + m * n))
              << kernel->name << ", " << Name(problem) << ", m " << m;
        }
      }
    }
  }
}

void ExpectRowsOfTheWhole(const GemmProblem& p) {
  const Case c = MakeCase(p, 11);
  for (const GemmKernelEntry* kernel : RunnableKernels(p)) {
    if (kernel->isa == KernelIsa::kScalar) continue;
    const Prepacked prepacked(c, kernel);
    const std::vector<float> whole = prepacked.Run(0, kMaxRows);
    for (const int64_t row : {0, 1, 95, 96, 97, 150, 199}) {
      const auto begin = whole.begin() + row * p.n;
      ASSERT_EQ(prepacked.Run(row, 1), std::vector<float>(begin, begin + p.n)) << kernel->name << ", " << Name(p) << ", row " << row;
    }
    for (const int64_t m : {33, 129}) {
      const auto begin = whole.begin() + 7 * p.n;
      ASSERT_EQ(prepacked.Run(7, m), std::vector<float>(begin, begin + m * p.n)) << kernel->name << ", " << Name(p) << ", m " << m;
    }
  }
}

TEST(IntegerGemm, ManyRowsInBlocksGiveTheSameBits) {
  for (const GemmActivation activation : {GemmActivation::kInt16, GemmActivation::kInt8}) {
    for (const int bits : {4, 8}) {
      for (const int64_t group : {64, 1280}) {  // 1280 k are more than a chunk
        for (const int offset : {0, 1, 2}) {
          GemmProblem p{.n = 135, .k = 1280, .group_size = group, .bits = bits, .has_zero_point = offset == 1, .has_min = offset == 2};
          p.activation = activation;
          p.activation_group = activation == GemmActivation::kInt16 ? 64 : group;
          ExpectRowsOfTheWhole(p);
        }
      }
    }
  }
}

// A call of 17 rows of the longest k that tiles take, one step more, and as many steps as a block of 128 rows can have: at the limits of
// the buffers that tiles are packed into, and beyond.
TEST(IntegerGemm, LongRowsGiveTheBitsOfTheScalarRow) {
  struct Size {
    GemmActivation activation;
    int64_t m, k;
  };
  for (const auto& [activation, m, k] :
       {Size{GemmActivation::kInt8, 17, 65536}, Size{GemmActivation::kInt8, 17, 65536 + 32}, Size{GemmActivation::kInt8, 17, 65536 + 64},
        Size{GemmActivation::kInt8, 128, 8192}, Size{GemmActivation::kInt16, 17, 32768}, Size{GemmActivation::kInt16, 17, 32768 + 32},
        Size{GemmActivation::kInt16, 17, 65536 + 64}, Size{GemmActivation::kInt16, 128, 4096}}) {
    for (const int bits : {4, 8}) {
      const GemmProblem p{
          .n = 17, .k = k, .group_size = 32, .bits = bits, .has_min = bits == 4, .activation = activation, .activation_group = 32};
      const Case c = MakeCase(p, 23, /*extreme=*/false, m);
      const std::vector<const GemmKernelEntry*> kernels = RunnableKernels(p);
      const std::vector<float> expected = Prepacked(c, kernels.back()).Run(0, m);
      for (const GemmKernelEntry* kernel : kernels) ASSERT_EQ(Prepacked(c, kernel).Run(0, m), expected) << kernel->name << ", " << Name(p);
    }
  }
}

// Every code and every activation at its limit: int32 sums come as close to overflow as can_implement allows.
TEST(IntegerGemm, TheLargestSumsDoNotOverflow) {
  for (const GemmProblem& problem : Problems(17)) {
    const Case c = MakeCase(problem, 13, /*extreme=*/true);
    for (const GemmKernelEntry* kernel : RunnableKernels(problem)) {
      ExpectWithinModel(c, 0, Prepacked(c, kernel).Run(0, 1), false, kernel->name);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(IntegerGemm, BiasThenResidualAreOneAdditionEach) {
  for (const GemmProblem& problem : Problems(33)) {
    const Case c = MakeCase(problem, 15);
    for (const GemmKernelEntry* kernel : RunnableKernels(problem)) {
      const Prepacked prepacked(c, kernel);
      const std::vector<float> plain = prepacked.Run(0, 2), both = prepacked.Run(0, 2, true, true);
      for (size_t i = 0; i < plain.size(); ++i) ASSERT_EQ(both[i], 1.0f + (plain[i] + c.bias[i % 33])) << kernel->name;
    }
  }
}

TEST(IntegerGemm, AnOutputOfLaterPanelsHoldsTheirColumns) {
  for (const GemmProblem& problem : Problems(100)) {
    const Case c = MakeCase(problem, 16);
    for (const GemmKernelEntry* kernel : RunnableKernels(problem)) {
      const Prepacked prepacked(c, kernel);
      for (const int64_t m : {1, 5, 17}) {
        const std::vector<float> whole = prepacked.Run(0, m);
        for (const int64_t begin : {1, 2, 6}) {
          const std::vector<float> part = prepacked.RunFromPanel(begin, m);
          const int64_t columns = 100 - begin * kGemmPanel;
          for (int64_t i = 0; i < m * columns; ++i) {
            ASSERT_EQ(part[i], whole[i / columns * 100 + begin * kGemmPanel + i % columns]) << kernel->name << ", " << Name(problem);
          }
        }
      }
    }
  }
}

TEST(IntegerGemm, RowsReadBackAsTheWeightsTheyStandFor) {
  for (const GemmProblem& p : Problems(17)) {
    const Case c = MakeCase(p, 17);
    for (const GemmKernelEntry* kernel : RunnableKernels(p)) {
      const Prepacked prepacked(c, kernel);
      for (const int64_t n : {0, 5, 16}) {
        std::vector<float> row(p.k);
        kernel->read_row(p, prepacked.weight(), n, row.data());
        for (int64_t k = 0; k < p.k; ++k) {
          const int64_t g = n * (p.k / p.group_size) + k / p.group_size;
          const float code = c.code[n * p.k + k];
          const float zero = p.has_zero_point ? c.zero_point[g] : static_cast<float>(1 << (p.bits - 1));
          ASSERT_EQ(row[k], p.has_min ? c.scale[g] * code - c.min[g] : c.scale[g] * (code - zero)) << kernel->name << ", " << Name(p);
        }
      }
    }
  }
}

// Outliers of three rows: none, one, and every fifth k.
struct Outliers {
  std::vector<int32_t> count, index;
  std::vector<float> value;

  Outliers(int64_t k, uint64_t seed) : index(3 * k, -1), value(3 * k) {
    RandomStream random(seed);
    const int64_t step[] = {k + 1, k, 5};
    for (int64_t r = 0; r < 3; ++r) {
      int32_t n = 0;
      for (int64_t i = r == 1 ? k - 1 : step[r] - 1; i < k; i += step[r], ++n) {
        index[r * k + n] = static_cast<int32_t>(i);
        value[r * k + n] = 6.0f + 10.0f * random.Uniform();
      }
      count.push_back(n);
    }
  }
  OutlierActivation View(int64_t row, int64_t k) const {
    return {.count = count.data() + row, .index = index.data() + row * k, .value = value.data() + row * k, .stride = k};
  }
};

// Adds the outliers of the rows [row, row + m) to `out` [m, n], panels [begin, end).
void AddOutliers(const Prepacked& prepacked, const GemmKernelEntry* kernel, const Outliers& outliers, const GemmProblem& p, int64_t row,
                 int64_t m, int64_t begin, int64_t end, std::vector<float>& out) {
  kernel->add_outliers({.problem = p,
                        .weight = prepacked.weight(),
                        .outlier = outliers.View(row, p.k),
                        .m = m,
                        .out = out.data(),
                        .out_stride = p.n,
                        .panel_begin = begin,
                        .panel_end = end});
}

TEST(IntegerGemm, OutliersAddTheirProductsWithTheWeights) {
  for (const GemmProblem& p : Problems(33)) {
    if (p.bits <= 4 || p.activation != GemmActivation::kInt8) continue;
    const Case c = MakeCase(p, 19);
    const Outliers outliers(p.k, 20);
    std::vector<float> first;
    for (const GemmKernelEntry* kernel : RunnableKernels(p)) {
      ASSERT_NE(kernel->add_outliers, nullptr) << kernel->name;
      const Prepacked prepacked(c, kernel);
      const std::vector<float> before = prepacked.Run(0, 3);
      std::vector<float> out = before;
      AddOutliers(prepacked, kernel, outliers, p, 0, 3, 0, 3, out);
      std::vector<float> weights(p.k);
      for (int64_t n = 0; n < p.n; ++n) {
        kernel->read_row(p, prepacked.weight(), n, weights.data());
        EXPECT_EQ(out[n], before[n]) << kernel->name;  // a row without outliers
        for (int64_t r = 1; r < 3; ++r) {
          float sum = 0;
          for (int32_t o = 0; o < outliers.count[r]; ++o) sum += outliers.value[r * p.k + o] * weights[outliers.index[r * p.k + o]];
          ASSERT_EQ(out[r * p.n + n], before[r * p.n + n] + sum) << kernel->name << ", " << Name(p) << ", row " << r << ", column " << n;
        }
      }
      if (first.empty()) first = out;
      EXPECT_EQ(out, first) << kernel->name;
      std::vector<float> last = prepacked.RunFromPanel(2, 3);  // one column
      kernel->add_outliers({.problem = p,
                            .weight = prepacked.weight(),
                            .outlier = outliers.View(0, p.k),
                            .m = 3,
                            .out = last.data(),
                            .out_stride = 1,
                            .out_panel = 2,
                            .panel_begin = 2,
                            .panel_end = 3});
      for (int64_t r = 0; r < 3; ++r) EXPECT_EQ(last[r], out[r * p.n + 32]) << kernel->name;
      // A row alone, and panel by panel.
      for (int64_t r = 0; r < 3; ++r) {
        std::vector<float> alone = prepacked.Run(r, 1);
        for (const int64_t panel : {2, 0, 1}) AddOutliers(prepacked, kernel, outliers, p, r, 1, panel, panel + 1, alone);
        EXPECT_EQ(alone, std::vector<float>(out.begin() + r * p.n, out.begin() + (r + 1) * p.n)) << kernel->name;
      }
    }
  }
}

TEST(IntegerGemm, RowsOfOneByteCodesTakeOutliers) {
  for (const GemmKernelEntry* row : AllGemmKernels()) {
    EXPECT_EQ(row->add_outliers != nullptr, row->weight == GemmWeight::kW8Grouped && row->activation == GemmActivation::kInt8) << row->name;
  }
}

TEST(IntegerGemm, RefusesWhatItCannotSumExactly) {
  GemmProblem p{.n = 16, .k = 131072, .group_size = 131072, .bits = 8, .activation = GemmActivation::kInt8, .activation_group = 131072};
  EXPECT_TRUE(RunnableKernels(p).empty());
  p.activation_group = 128;
  EXPECT_FALSE(RunnableKernels(p).empty());
  p.activation = GemmActivation::kInt16;
  p.activation_group = 512;
  EXPECT_TRUE(RunnableKernels(p).empty());
  p.activation_group = 256;
  EXPECT_FALSE(RunnableKernels(p).empty());
}

}  // namespace
}  // namespace pith
