#include "kernels/rotary.h"

#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/operator_test_fixture.h"

namespace pith {
namespace {

struct RotaryShape {
  int64_t num_heads, head_dim, rotary_dim;
};

constexpr RotaryShape kRotaryShapes[] = {{1, 8, 2},   {2, 8, 8},   {3, 40, 10},   {3, 40, 40},   {2, 64, 32},
                                         {9, 64, 64}, {4, 96, 94}, {2, 128, 128}, {1, 256, 256}, {5, 48, 34}};
constexpr int64_t kMaxPosition = 50;

std::vector<float> Angles(int64_t half, double (*function)(double)) {
  std::vector<float> table;
  for (int64_t p = 0; p < kMaxPosition; ++p) {
    for (int64_t i = 0; i < half; ++i) {
      const double frequency = std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half));
      table.push_back(static_cast<float>(function(static_cast<double>(p) * frequency)));
    }
  }
  return table;
}

TEST(RotaryTest, MatchesTheDefinition) {
  const std::vector<int32_t> position = {49, 0, 7, 7, 13};
  const int64_t num_rows = static_cast<int64_t>(position.size());
  for (const RotaryShape& s : kRotaryShapes) {
    const int64_t half = s.rotary_dim / 2, stride = s.num_heads * s.head_dim + 3;
    const std::vector<float> cos = Angles(half, std::cos), sin = Angles(half, std::sin), x = NormalValues(num_rows * stride, 9);
    const PageEndBuffer<float> readable_cos(cos), readable_sin(sin);  // position 49 is their last row
    for (const auto& row : RunnableRows(&OperatorEntry::rotary)) {
      GuardedBuffer<float> out(num_rows * stride);
      std::copy(x.begin(), x.end(), out.data());
      row.run({.x = out.data(),
               .x_stride = stride,
               .num_rows = num_rows,
               .num_heads = s.num_heads,
               .head_dim = s.head_dim,
               .rotary_dim = s.rotary_dim,
               .position = position.data(),
               .cos = readable_cos.data(),
               .sin = readable_sin.data()});
      EXPECT_TRUE(out.Intact()) << row.name;
      for (int64_t at = 0; at < num_rows * stride; ++at) {
        const int64_t r = at / stride, d = at % stride % s.head_dim;
        if (at % stride >= s.num_heads * s.head_dim || d >= s.rotary_dim) {
          ASSERT_EQ(out[at], x[at]) << row.name << " outside the rotated part, element " << at;
          continue;
        }
        const double c = cos[position[r] * half + d % half], sn = sin[position[r] * half + d % half];
        const double expected = d < half ? x[at] * c - x[at + half] * sn : x[at] * c + x[at - half] * sn;
        const double magnitude = std::fabs(x[at] * c) + std::fabs(expected - x[at] * c);
        ASSERT_NEAR(out[at], expected, 2 * kF32Unit * magnitude) << row.name << " head_dim " << s.head_dim << " element " << at;
      }
    }
  }
}

TEST(RotaryTest, BitsOfARowDoNotDependOnTheCall) {
  const std::vector<int32_t> position = {3, 4, 5, 6, 49, 1, 0};
  for (const RotaryShape& s : kRotaryShapes) {
    const int64_t half = s.rotary_dim / 2, stride = s.num_heads * s.head_dim;
    const std::vector<float> cos = Angles(half, std::cos), sin = Angles(half, std::sin), x = NormalValues(7 * stride, 10);
    for (const auto& row : RunnableRows(&OperatorEntry::rotary)) {
      RotaryParams p{.x_stride = stride,
                     .num_heads = s.num_heads,
                     .head_dim = s.head_dim,
                     .rotary_dim = s.rotary_dim,
                     .cos = cos.data(),
                     .sin = sin.data()};
      std::vector<float> together = x, alone = x;
      p.x = together.data();
      p.num_rows = 7;
      p.position = position.data();
      row.run(p);
      p.num_rows = 1;
      for (int64_t r = 0; r < 7; ++r) {
        p.x = alone.data() + r * stride;
        p.position = &position[r];
        row.run(p);
      }
      ASSERT_EQ(alone, together) << row.name << " head_dim " << s.head_dim;
    }
  }
}

TEST(RotaryTest, QuarterTurn) {
  const std::vector<float> cos = {0.0f, 0.0f}, sin = {1.0f, 1.0f};
  const int32_t position = 0;
  for (const auto& row : RunnableRows(&OperatorEntry::rotary)) {
    std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
    row.run({.x = x.data(),
             .x_stride = 8,
             .num_rows = 1,
             .num_heads = 1,
             .head_dim = 8,
             .rotary_dim = 4,
             .position = &position,
             .cos = cos.data(),
             .sin = sin.data()});
    EXPECT_THAT(x, testing::ElementsAre(-3, -4, 1, 2, 5, 6, 7, 8)) << row.name;
  }
}

}  // namespace
}  // namespace pith
