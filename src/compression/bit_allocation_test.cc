#include "compression/bit_allocation.h"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace pith {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Best {
  double loss = std::numeric_limits<double>::infinity();
  int64_t bytes = 0;
};

// Every choice there is.
Best BruteForce(const std::vector<AllocationItem>& items, int64_t budget, size_t item = 0, int64_t bytes = 0, double loss = 0) {
  if (bytes > budget) return {};
  if (item == items.size()) return {loss, bytes};
  Best best;
  for (const AllocationOption& option : items[item].options) {
    const Best found = BruteForce(items, budget, item + 1, bytes + option.bytes, loss + option.loss);
    if (found.loss < best.loss || (found.loss == best.loss && found.bytes < best.bytes)) best = found;
  }
  return best;
}

int64_t SmallestBytes(const std::vector<AllocationItem>& items) {
  int64_t total = 0;
  for (const AllocationItem& item : items) {
    int64_t smallest = std::numeric_limits<int64_t>::max();
    for (const AllocationOption& option : item.options) smallest = std::min(smallest, option.bytes);
    total += smallest;
  }
  return total;
}

int64_t LargestBytes(const std::vector<AllocationItem>& items) {
  int64_t total = 0;
  for (const AllocationItem& item : items) {
    int64_t largest = 0;
    for (const AllocationOption& option : item.options) largest = std::max(largest, option.bytes);
    total += largest;
  }
  return total;
}

std::vector<AllocationItem> DrawItems(int max_bytes) {
  const int num_items = *rc::gen::inRange(1, 6);
  std::vector<AllocationItem> items(num_items);
  for (int i = 0; i < num_items; ++i) {
    items[i].name = absl::StrCat("item", i);
    const int num_options = *rc::gen::inRange(1, 5);
    // Losses of whole numbers: sums are exact in any order, and ties happen.
    for (int o = 0; o < num_options; ++o) {
      items[i].options.push_back({o, *rc::gen::inRange(0, max_bytes), static_cast<double>(*rc::gen::inRange(-5, 40))});
    }
  }
  return items;
}

void CheckConsistent(const std::vector<AllocationItem>& items, int64_t budget, const Allocation& found) {
  RC_ASSERT(found.choice.size() == items.size());
  int64_t bytes = 0;
  double loss = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    bytes += items[i].options.at(found.choice[i]).bytes;
    loss += items[i].options.at(found.choice[i]).loss;
  }
  RC_ASSERT(bytes == found.bytes);
  RC_ASSERT(loss == found.loss);
  RC_ASSERT(bytes <= budget);
}

RC_GTEST_PROP(BitAllocationProperty, IsTheOptimumOfBruteForce, ()) {
  const std::vector<AllocationItem> items = DrawItems(50);
  const int64_t budget = SmallestBytes(items) + *rc::gen::inRange(0, 200);
  const auto found = AllocateBits(items, budget);
  RC_ASSERT(found.ok());
  CheckConsistent(items, budget, *found);
  const Best best = BruteForce(items, budget);
  RC_ASSERT(found->exact);
  RC_ASSERT(found->loss == best.loss);
  RC_ASSERT(found->bytes == best.bytes);
  RC_ASSERT(found->lower_bound <= best.loss + 1e-9);
}

RC_GTEST_PROP(BitAllocationProperty, ThePriceSolutionIsWithinOneStepOfTheOptimum, ()) {
  const std::vector<AllocationItem> items = DrawItems(50);
  const int64_t budget = SmallestBytes(items) + *rc::gen::inRange(0, 200);
  const auto by_price = AllocateBitsByPrice(items, budget);
  RC_ASSERT(by_price.ok());
  CheckConsistent(items, budget, *by_price);
  const Best best = BruteForce(items, budget);
  RC_ASSERT(by_price->lower_bound <= best.loss + 1e-9);
  RC_ASSERT(by_price->loss >= best.loss);
  // What the step that did not fit would have saved; losses span 45.
  RC_ASSERT(by_price->loss - by_price->lower_bound <= 45.0 + 1e-9);
  if (by_price->exact) RC_ASSERT(by_price->loss == best.loss);
}

// A table of few cells: bytes are rounded up to its unit.
RC_GTEST_PROP(BitAllocationProperty, ACoarseTableStaysWithinItsBound, ()) {
  const std::vector<AllocationItem> items = DrawItems(1000);
  const AllocationLimits coarse = {.max_cells = *rc::gen::inRange(1, 30)};
  double previous = std::numeric_limits<double>::infinity();
  for (int64_t budget = SmallestBytes(items); budget <= LargestBytes(items) + 50; budget += 97) {
    const auto found = AllocateBits(items, budget, coarse);
    RC_ASSERT(found.ok());
    CheckConsistent(items, budget, *found);
    RC_ASSERT(found->loss <= AllocateBitsByPrice(items, budget)->loss);
    RC_ASSERT(found->loss >= BruteForce(items, budget).loss);
    RC_ASSERT(found->loss <= previous);
    const int64_t reduced = budget - static_cast<int64_t>(items.size()) * found->unit_bytes;
    if (reduced >= SmallestBytes(items)) RC_ASSERT(found->loss <= BruteForce(items, reduced).loss);
    previous = found->loss;
  }
  RC_ASSERT(AllocateBits(items, LargestBytes(items), coarse)->loss == BruteForce(items, LargestBytes(items)).loss);
}

RC_GTEST_PROP(BitAllocationProperty, ALargerBudgetNeverCostsLoss, ()) {
  const std::vector<AllocationItem> items = DrawItems(300);
  double previous = std::numeric_limits<double>::infinity();
  for (int64_t budget = SmallestBytes(items); budget <= LargestBytes(items); budget += 1 + (budget % 7)) {
    const auto found = AllocateBits(items, budget);
    RC_ASSERT(found.ok());
    RC_ASSERT(found->loss <= previous);
    previous = found->loss;
  }
}

TEST(BitAllocationTest, ByHand) {
  const std::vector<AllocationItem> items = {{"qkv", {{4, 40, 10}, {8, 80, 1}}}, {"mlp", {{4, 60, 30}, {8, 120, 2}}}};
  const auto choice = [&](int64_t budget) { return AllocateBits(items, budget)->choice; };
  EXPECT_THAT(choice(100), ElementsAre(0, 0));
  EXPECT_THAT(choice(139), ElementsAre(0, 0));
  EXPECT_THAT(choice(140), ElementsAre(1, 0));  // saves 9 for 40 bytes; the better step does not fit yet
  EXPECT_THAT(choice(160), ElementsAre(0, 1));
  EXPECT_THAT(choice(200), ElementsAre(1, 1));
  const auto found = AllocateBits(items, 150);
  EXPECT_EQ(found->bytes, 140);
  EXPECT_EQ(found->loss, 31);
  EXPECT_EQ(found->unit_bytes, 20);
  EXPECT_TRUE(found->exact);
  EXPECT_NEAR(found->lower_bound, 40 - 50 * 28.0 / 60, 1e-12);
  EXPECT_NEAR(found->price, 28.0 / 60, 1e-12);
  EXPECT_EQ(AllocateBits(items, 1 << 30)->price, 0);
}

// The middle option of b is above its hull, and still the best there is for some budgets.
TEST(BitAllocationTest, OptionsAboveTheHullAreUsed) {
  const std::vector<AllocationItem> items = {{"b", {{0, 0, 100}, {1, 10, 99}, {2, 20, 0}}}};
  EXPECT_THAT(AllocateBits(items, 15)->choice, ElementsAre(1));
  EXPECT_THAT(AllocateBitsByPrice(items, 15)->choice, ElementsAre(0));
}

TEST(BitAllocationTest, TiesGoToFewerBytesThenToTheFirst) {
  const std::vector<AllocationItem> equal = {{"a", {{0, 30, 5}, {1, 20, 5}, {2, 20, 5}, {3, 10, 6}}}};
  EXPECT_THAT(AllocateBits(equal, 100)->choice, ElementsAre(1));
  const std::vector<AllocationItem> twins = {{"a", {{0, 0, 1}, {1, 10, 0}}}, {"b", {{0, 0, 1}, {1, 10, 0}}}};
  EXPECT_EQ(AllocateBits(twins, 10)->choice, AllocateBits(twins, 19)->choice);
}

TEST(BitAllocationTest, ThousandsOfOptionsFitTheTable) {
  std::vector<AllocationItem> items(300);
  for (size_t i = 0; i < items.size(); ++i) {
    for (int bits = 2; bits <= 9; ++bits) {
      const auto bytes = static_cast<int64_t>(576 * 1024 * (1 + i % 7)) * bits / 8;
      items[i].options.push_back({bits, bytes, std::exp2(-2.0 * bits) * static_cast<double>(1 + i * i % 101)});
    }
  }
  const int64_t smallest = SmallestBytes(items), largest = LargestBytes(items);
  const auto found = AllocateBits(items, (smallest + largest) / 2);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found->exact);
  EXPECT_LE(found->bytes, (smallest + largest) / 2);
  EXPECT_GE(found->loss, found->lower_bound);
  EXPECT_LE(found->loss, found->lower_bound * 1.01);
}

TEST(BitAllocationTest, Errors) {
  const std::vector<AllocationItem> items = {{"qkv", {{4, 40, 10}, {8, 80, 1}}}, {"mlp", {{4, 60, 30}}}};
  const absl::Status small = AllocateBits(items, 99).status();
  EXPECT_TRUE(absl::IsInvalidArgument(small));
  EXPECT_THAT(small.message(), HasSubstr("at least 100 bytes"));
  EXPECT_THAT(AllocateBits({{"x", {}}}, 1).status().message(), HasSubstr("x: expected 1 to 255 options, found 0"));
  EXPECT_THAT(AllocateBits({{"x", std::vector<AllocationOption>(256)}}, 1).status().message(), HasSubstr("found 256"));
  EXPECT_THAT(AllocateBits({{"x", {{0, -1, 0}}}}, 1).status().message(), HasSubstr("found -1"));
  EXPECT_THAT(AllocateBits({{"x", {{0, 1, std::nan("")}}}}, 1).status().message(), HasSubstr("x: expected a finite loss"));
  EXPECT_THAT(AllocateBitsByPrice(items, 99).status().message(), HasSubstr("at least 100 bytes"));
  const auto none = AllocateBits({}, 0);
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->choice.empty());
}

}  // namespace
}  // namespace pith
