#include "compression/modifiers/bf16_gram.h"

#include <cmath>

#include "base/float_types.h"
#include "compression/modifiers/solver_test_fixture.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

constexpr int64_t kBlockRows = 128, kTile = 48, kIn = 100;  // the last tile has 4 columns

class Bf16GramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    gram_ = Bf16Gram::Make(kIn, kTile, kBlockRows, DetectIsa());
    if (gram_ == nullptr) GTEST_SKIP() << "this CPU has no tile unit";
  }

  std::vector<float> Product(int64_t i, int64_t j) const {
    const auto width = [](int64_t tile) { return std::min(kTile, kIn - tile * kTile); };
    std::vector<float> out(static_cast<size_t>(width(i) * width(j)));
    gram_->MultiplyTile(i, j, {out.data(), width(i), width(j)});
    return out;
  }

  // Against sums in double: |difference| <= share * sum |x y|.
  void ExpectProducts(const TestMatrix& rows, double share) const {
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t j = 0; j < 3; ++j) {
        const std::vector<float> found = Product(i, j);
        const int64_t width = std::min(kTile, kIn - j * kTile);
        for (size_t n = 0; n < found.size(); ++n) {
          const int64_t a = i * kTile + static_cast<int64_t>(n) / width, b = j * kTile + static_cast<int64_t>(n) % width;
          double sum = 0, magnitude = 0;
          for (int64_t r = 0; r < rows.rows; ++r) {
            const double product = static_cast<double>(rows.row(r)[a]) * static_cast<double>(rows.row(r)[b]);
            sum += product;
            magnitude += std::fabs(product);
          }
          ASSERT_NEAR(found[n], sum, share * magnitude) << i << " " << j << " " << n;
        }
      }
    }
  }

  std::unique_ptr<Bf16Gram> gram_;
  ThreadPool pool_{2};
};

TEST(Bf16Gram, NeedsATileUnit) { EXPECT_EQ(Bf16Gram::Make(kIn, kTile, kBlockRows, Isa::kScalar), nullptr); }

// Full blocks, then fewer rows: nothing of the earlier ones stays.
TEST_F(Bf16GramTest, MultipliesSplitNumbers) {
  for (const int64_t count : {kBlockRows, int64_t{77}, int64_t{1}}) {
    const TestMatrix rows = CorrelatedRows(count, kIn, static_cast<uint64_t>(count));
    gram_->Load(rows.view(), pool_);
    ExpectProducts(rows, 4.7e-5);
  }
}

TEST_F(Bf16GramTest, RowsOfBf16NumbersAreExact) {
  // Integers below 2^8: sums of products are integers below 2^24.
  TestMatrix rows(kBlockRows, kIn);
  RandomStream random(5);
  for (float& value : rows.values) value = static_cast<float>(random.Below(511)) - 255.0f;
  gram_->Load(rows.view(), pool_);
  ExpectProducts(rows, 0);
  // One column that is not bf16: its tile alone gets a low part.
  for (int64_t r = 0; r < kBlockRows; ++r) rows.row(r)[50] += 0.25f;
  gram_->Load(rows.view(), pool_);
  ExpectProducts(rows, 4.7e-5);
}

TEST_F(Bf16GramTest, WhatIsNotFiniteShowsInItsColumn) {
  for (const float bad : {std::nanf(""), HUGE_VALF}) {
    TestMatrix rows = CorrelatedRows(20, kIn, 6);
    rows.row(3)[60] = bad;
    gram_->Load(rows.view(), pool_);
    const std::vector<float> found = Product(1, 1);
    for (int64_t c = 0; c < kTile; ++c) EXPECT_EQ(std::isfinite(found[static_cast<size_t>(c * kTile + c)]), c != 60 - kTile) << c;
  }
}

}  // namespace
}  // namespace pith
