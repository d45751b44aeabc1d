#include "compression/input_statistics.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/random.h"

namespace pith {
namespace {

constexpr int64_t kIn = 24, kRows = 1300;

std::vector<float> RandomRows() {
  RandomStream random(5);
  std::vector<float> rows(kRows * kIn);
  for (float& value : rows) value = random.Normal();
  return rows;
}

TEST(InputStatisticsTest, AreThoseOfTheRowsHoweverTheyCome) {
  const std::vector<float> rows = RandomRows();
  ThreadPool one(1), two(2);
  InputStatistics whole(kIn, StatisticsLevel::kHessian, kRows, *SelectIsa()), cut(kIn, StatisticsLevel::kHessian, kRows, *SelectIsa());
  whole.Add({rows.data(), kRows, kIn}, one);
  for (int64_t begin = 0; begin < kRows; begin += 7) {
    cut.Add({rows.data() + begin * kIn, std::min<int64_t>(7, kRows - begin), kIn}, two);
  }
  EXPECT_EQ(whole.num_rows(), kRows);
  EXPECT_EQ(whole.max_abs(), cut.max_abs());
  EXPECT_EQ(whole.MeanAbs(), cut.MeanAbs());
  EXPECT_EQ(whole.MeanSquare(), cut.MeanSquare());
  ASSERT_EQ(whole.sample().rows, cut.sample().rows);
  EXPECT_EQ(whole.sample().rows, (kRows + 2) / 3);  // every third: at most 512
  for (int64_t r = 0; r < whole.sample().rows; ++r) {
    EXPECT_TRUE(std::equal(whole.sample().row(r), whole.sample().row(r) + kIn, rows.data() + 3 * r * kIn));
    EXPECT_TRUE(std::equal(whole.sample().row(r), whole.sample().row(r) + kIn, cut.sample().row(r)));
  }
  double sum = 0, square = 0;
  float largest = 0;
  for (int64_t r = 0; r < kRows; ++r) {
    sum += std::fabs(rows[r * kIn + 3]);
    square += static_cast<double>(rows[r * kIn + 3]) * rows[r * kIn + 3];
    largest = std::max(largest, std::fabs(rows[r * kIn + 3]));
  }
  EXPECT_EQ(whole.max_abs()[3], largest);
  EXPECT_NEAR(whole.MeanAbs()[3], sum / kRows, 1e-6);
  EXPECT_NEAR(whole.MeanSquare()[3], square / kRows, 1e-6);
  const auto hessian = whole.Hessian(one);
  ASSERT_TRUE(hessian.ok());
  EXPECT_NEAR(hessian->row(3)[3], 2 * square / kRows, 1e-4);
}

// Dividing afterwards comes to the same as rows that were divided before.
TEST(InputStatisticsTest, ChannelsCanBeDivided) {
  const std::vector<float> rows = RandomRows();
  std::vector<float> divisors(kIn), divided = rows;
  for (int64_t i = 0; i < kIn; ++i) divisors[i] = std::ldexp(1.0f, static_cast<int>(i % 5) - 2);
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t i = 0; i < kIn; ++i) divided[r * kIn + i] /= divisors[i];
  }
  ThreadPool pool(2);
  InputStatistics before(kIn, StatisticsLevel::kHessian, kRows, *SelectIsa()), after(kIn, StatisticsLevel::kHessian, kRows, *SelectIsa());
  before.Add({divided.data(), kRows, kIn}, pool);
  after.Add({rows.data(), kRows, kIn}, pool);
  ASSERT_TRUE(after.DivideChannels(divisors, pool).ok());
  EXPECT_EQ(before.max_abs(), after.max_abs());
  EXPECT_EQ(before.MeanAbs(), after.MeanAbs());
  EXPECT_EQ(before.MeanSquare(), after.MeanSquare());
  EXPECT_TRUE(std::equal(before.sample().data, before.sample().data + before.sample().rows * kIn, after.sample().data));
  const auto expected = before.Hessian(pool), found = after.Hessian(pool);
  ASSERT_TRUE(expected.ok() && found.ok());
  for (int64_t i = 0; i < kIn; ++i) {
    for (int64_t j = 0; j < kIn; ++j) EXPECT_NEAR(found->row(i)[j], expected->row(i)[j], 1e-5 * std::fabs(expected->row(i)[i]) + 1e-5);
  }
}

TEST(InputStatisticsTest, KeepsWhatItsLevelSays) {
  const std::vector<float> rows = RandomRows();
  ThreadPool pool(1);
  InputStatistics channels(kIn, StatisticsLevel::kChannels, kRows, Isa::kScalar);
  channels.Add({rows.data(), 8, kIn}, pool);
  EXPECT_EQ(channels.sample().rows, 0);
  EXPECT_TRUE(absl::IsInternal(channels.Hessian(pool).status()));
  EXPECT_TRUE(channels.DivideChannels(std::vector<float>(kIn, 2.0f), pool).ok());
}

TEST(InputStatisticsTest, NumbersThatAreNotFiniteStay) {
  std::vector<float> rows(4 * kIn, 1.0f);
  rows[kIn + 2] = std::numeric_limits<float>::quiet_NaN();
  ThreadPool pool(1);
  InputStatistics statistics(kIn, StatisticsLevel::kHessian, 4, *SelectIsa());
  statistics.Add({rows.data(), 4, kIn}, pool);
  EXPECT_TRUE(std::isnan(statistics.max_abs()[2]));
  EXPECT_TRUE(absl::IsDataLoss(statistics.Hessian(pool).status()));
}

}  // namespace
}  // namespace pith
