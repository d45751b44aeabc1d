#include "base/nearest_name.h"

#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(EditDistance, CountsEdits) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("abc", ""), 3);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(EditDistance("flaw", "lawn"), 2);
  EXPECT_EQ(EditDistance("W4A16", "w4a16"), 0);
}

TEST(NearestName, PicksTheFirstOfTheClosest) {
  EXPECT_EQ(NearestName("num_bit", {"type", "num_bits", "strategy"}), "num_bits");
  EXPECT_EQ(NearestName("x", {"a", "b"}), "a");
  EXPECT_EQ(NearestName("x", {}), "");
}

}  // namespace
}  // namespace pith
