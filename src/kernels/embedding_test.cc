#include "kernels/embedding.h"

#include <bit>
#include <cstring>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/operator_test_fixture.h"

namespace pith {
namespace {

TEST(EmbeddingTest, CopiesScaledTableRows) {
  const std::vector<int32_t> token = {6, 0, 3, 3};
  for (int64_t dim : {1, 7, 8, 9, 16, 31, 64, 100, 577}) {
    std::vector<uint16_t> table;
    for (float x : NormalValues(7 * dim, 1)) table.push_back(ToBits(x));
    const int64_t stride = dim + 3;
    const PageEndBuffer<uint16_t> readable(table);  // token 6 is its last row
    for (const auto& row : RunnableRows(&OperatorEntry::embedding)) {
      for (float scale : {1.0f, 25.298221f}) {
        GuardedBuffer<float> out(4 * stride, 7.0f);
        row.run({.table = readable.data(),
                 .token = token.data(),
                 .scale = scale,
                 .out = out.data(),
                 .out_stride = stride,
                 .num_rows = 4,
                 .dim = dim});
        EXPECT_TRUE(out.Intact()) << row.name;
        for (int64_t at = 0; at < 4 * stride; ++at) {
          const int64_t r = at / stride, i = at % stride;
          const float expected = i < dim ? FromBits(table[static_cast<size_t>(token[r] * dim + i)]) * scale : 7.0f;
          ASSERT_EQ(out[at], expected) << row.name << " dim " << dim << " row " << r << " element " << i;
        }
      }
    }
  }
}

// Sign, exponent, the kept mantissa bits and the rounded-off bits, in every combination that rounds differently: ties to even and odd,
// just above and below a tie, carries into the exponent and into infinity, subnormals, zeros, infinities, NaN with any payload.
std::vector<float> RoundingCases() {
  std::vector<float> cases;
  for (uint32_t high = 0; high < 0x10000; ++high) {
    const uint32_t mantissa = high & 0x7F;
    if (mantissa > 2 && mantissa < 0x7D && high % 11 != 0) continue;
    for (uint32_t low : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) cases.push_back(std::bit_cast<float>(high << 16 | low));
  }
  return cases;
}

TEST(ConvertTest, RoundsToNearestEvenForEveryKindOfValue) {
  const std::vector<float> cases = RoundingCases();
  const int64_t count = static_cast<int64_t>(cases.size());
  for (const auto& row : RunnableRows(&OperatorEntry::convert)) {
    GuardedBuffer<uint16_t> out(count);
    row.run({.in = cases.data(), .out = out.data(), .count = count});
    EXPECT_TRUE(out.Intact()) << row.name;
    for (int64_t i = 0; i < count; ++i) {
      ASSERT_EQ(out[i], ToBits(cases[i])) << row.name << " input bits " << std::hex << std::bit_cast<uint32_t>(cases[i]);
    }
  }
}

TEST(ConvertTest, AnyCount) {
  const std::vector<float> in = NormalValues(70, 3);
  for (const auto& row : RunnableRows(&OperatorEntry::convert)) {
    for (int64_t count = 0; count <= 70; ++count) {
      GuardedBuffer<uint16_t> out(count);
      const PageEndBuffer<float> exact(std::vector<float>(in.begin(), in.begin() + count));
      row.run({.in = exact.data(), .out = out.data(), .count = count});
      EXPECT_TRUE(out.Intact()) << row.name << " count " << count;
      for (int64_t i = 0; i < count; ++i) ASSERT_EQ(out[i], ToBits(in[i])) << row.name << " count " << count;
    }
  }
}

}  // namespace
}  // namespace pith
