#include "compression/modifiers/hadamard.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "compression/modifiers/solver_test_fixture.h"

namespace pith {
namespace {

constexpr uint64_t kSeed = 20240404;

// R as a dense matrix: row i is e_i R.
std::vector<std::vector<double>> Dense(const HadamardRotation& rotation) {
  std::vector<std::vector<double>> rows(static_cast<size_t>(rotation.size()), std::vector<double>(static_cast<size_t>(rotation.size())));
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i][i] = 1;
    rotation.Rotate(absl::MakeSpan(rows[i]));
  }
  return rows;
}

TEST(PaleyHadamardTest, RowsAreOrthogonalSigns) {
  std::vector<int64_t> orders;
  for (int64_t m = 1; m <= 260; ++m) {
    const std::vector<int8_t> h = PaleyHadamard(m);
    if (h.empty()) continue;
    orders.push_back(m);
    ASSERT_EQ(h.size(), static_cast<size_t>(m * m));
    for (int64_t a = 0; a < m; ++a) {
      for (int64_t b = 0; b <= a; ++b) {
        int sum = 0;
        for (int64_t j = 0; j < m; ++j) {
          ASSERT_EQ(std::abs(h[static_cast<size_t>(a * m + j)]), 1);
          sum += h[static_cast<size_t>(a * m + j)] * h[static_cast<size_t>(b * m + j)];
        }
        ASSERT_EQ(sum, a == b ? m : 0) << "order " << m << " rows " << a << " " << b;
      }
    }
  }
  for (const int64_t m : {1, 4, 8, 12, 20, 24, 28, 32, 36, 44, 60, 76}) EXPECT_THAT(orders, testing::Contains(m));
  for (const int64_t m : {2, 3, 18, 52, 92, 260}) EXPECT_THAT(orders, testing::Not(testing::Contains(m)));
}

TEST(HadamardRotationTest, SizesOfModels) {
  const std::pair<int64_t, int64_t> kSizes[] = {{1, 1},     {2, 1},    {64, 1},    {4096, 1},  {576, 36},  {896, 28}, {1152, 36},
                                                {1536, 12}, {960, 60}, {3584, 28}, {5120, 20}, {2304, 36}, {80, 20},  {96, 12}};
  for (const auto& [size, order] : kSizes) {
    const auto rotation = HadamardRotation::Create(size, kSeed);
    ASSERT_TRUE(rotation.ok()) << rotation.status();
    EXPECT_EQ(rotation->paley_order(), order) << size;
  }
  for (const int64_t size : {3, 6, 18, 25, 50, 100, 52, 13}) {
    EXPECT_TRUE(absl::IsUnimplemented(HadamardRotation::Create(size).status())) << size;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(HadamardRotation::Create(0).status()));
}

TEST(HadamardRotationTest, IsTheKroneckerProductWithSigns) {
  // Size 4 without signs: Sylvester's matrix over 2.
  const double kSylvester[4][4] = {{1, 1, 1, 1}, {1, -1, 1, -1}, {1, 1, -1, -1}, {1, -1, -1, 1}};
  const auto four = Dense(*HadamardRotation::Create(4));
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) EXPECT_EQ(four[i][j], kSylvester[i][j] / 2) << i << " " << j;
  }
  const auto plain = Dense(*HadamardRotation::Create(24)), seeded = Dense(*HadamardRotation::Create(24, kSeed));
  const std::vector<int8_t> paley = PaleyHadamard(12);
  int negative = 0;
  for (int i = 0; i < 24; ++i) {
    const double sign = seeded[i][0] * plain[i][0] > 0 ? 1 : -1;
    negative += sign < 0 ? 1 : 0;
    for (int j = 0; j < 24; ++j) {
      const double outer = i / 12 == 1 && j / 12 == 1 ? -1 : 1;
      EXPECT_NEAR(plain[i][j], outer * paley[static_cast<size_t>(i % 12 * 12 + j % 12)] / std::sqrt(24.0), 1e-15) << i << " " << j;
      EXPECT_EQ(seeded[i][j], sign * plain[i][j]);
    }
  }
  EXPECT_GT(negative, 4);
  EXPECT_LT(negative, 20);
  EXPECT_NE(Dense(*HadamardRotation::Create(24, kSeed, 1)), seeded);
  EXPECT_NE(Dense(*HadamardRotation::Create(24, kSeed + 1)), seeded);
  EXPECT_EQ(Dense(*HadamardRotation::Create(24, kSeed)), seeded);
}

RC_GTEST_PROP(HadamardRotationProperty, KeepsLengthsAndComesBack, ()) {
  const int64_t m = *rc::gen::element<int64_t>(1, 12, 20, 28, 36);
  const int64_t size = m << *rc::gen::inRange(0, 5);
  const auto rotation = HadamardRotation::Create(size, *rc::gen::arbitrary<uint64_t>(), 3);
  RC_ASSERT(rotation.ok());
  RandomStream random(*rc::gen::arbitrary<uint64_t>());
  std::vector<double> x(static_cast<size_t>(size));
  double before = 0, after = 0, difference = 0;
  for (double& value : x) before += std::pow(value = random.Normal(), 2);
  std::vector<double> y = x;
  rotation->Rotate(absl::MakeSpan(y));
  for (const double value : y) after += value * value;
  rotation->RotateBack(absl::MakeSpan(y));
  for (size_t i = 0; i < x.size(); ++i) difference = std::max(difference, std::fabs(x[i] - y[i]));
  RC_ASSERT(std::fabs(before - after) <= 1e-12 * before);
  RC_ASSERT(difference <= 1e-13 * std::sqrt(before));
}

// An outlier becomes as small as everything else.
TEST(HadamardRotationTest, SpreadsAnOutlier) {
  const auto rotation = HadamardRotation::Create(576, kSeed);
  std::vector<double> x(576, 0.0);
  x[100] = 24;
  rotation->Rotate(absl::MakeSpan(x));
  for (const double value : x) EXPECT_NEAR(std::fabs(value), 1, 1e-12);
}

TEST(HadamardRotationTest, MatricesByRowsAndColumns) {
  ThreadPool one(1), three(3);
  const auto rotation = HadamardRotation::Create(24, kSeed);
  const auto dense = Dense(*rotation);
  const TestMatrix original = RandomMatrix(24, 24, 5);
  TestMatrix rows = original, columns = original, again = original;
  const auto view = [](TestMatrix& matrix) { return MatrixView<float>(matrix.values.data(), matrix.rows, matrix.cols); };
  rotation->RotateRows(view(rows), one);
  rotation->RotateColumns(view(columns), one);
  for (int i = 0; i < 24; ++i) {
    for (int j = 0; j < 24; ++j) {
      double mr = 0, rtm = 0;
      for (int k = 0; k < 24; ++k) {
        mr += original.row(i)[k] * dense[k][j];
        rtm += dense[k][i] * original.row(k)[j];
      }
      EXPECT_NEAR(rows.row(i)[j], mr, 1e-6);
      EXPECT_NEAR(columns.row(i)[j], rtm, 1e-6);
    }
  }
  rotation->RotateRows(view(again), three);
  EXPECT_EQ(again.values, rows.values);
  rotation->RotateRowsBack(view(rows), three);
  rotation->RotateColumnsBack(view(columns), three);
  for (size_t i = 0; i < rows.values.size(); ++i) {
    EXPECT_NEAR(rows.values[i], original.values[i], 1e-6);
    EXPECT_NEAR(columns.values[i], original.values[i], 1e-6);
  }
  // A part of a wider matrix, and more columns than are taken at once.
  TestMatrix wide = RandomMatrix(24, 50, 6);
  const TestMatrix wide_before = wide;
  rotation->RotateColumns(MatrixView<float>(wide.values.data() + 3, 24, 41, 50), three);
  rotation->RotateColumnsBack(MatrixView<float>(wide.values.data() + 3, 24, 41, 50), one);
  for (size_t i = 0; i < wide.values.size(); ++i) {
    const bool outside = i % 50 < 3 || i % 50 >= 44;
    EXPECT_NEAR(wide.values[i], wide_before.values[i], outside ? 0 : 1e-6);
  }
}

}  // namespace
}  // namespace pith
