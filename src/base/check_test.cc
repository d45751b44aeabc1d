#include "base/check.h"

#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(CheckDeathTest, SaysWhereAndWhat) {
  const int three = 3;
  CHECK(three == 3);
  CHECK_LE(three, 3);
  EXPECT_DEATH(CHECK(three == 4), "check_test.cc:[0-9]+: CHECK failed: three == 4");
  EXPECT_DEATH(CHECK_LT(three, 3), "CHECK failed: \\(three\\) < \\(3\\)");
}

TEST(CheckDeathTest, EvaluatesOnceAndWorksInAnIfWithoutBraces) {
  int calls = 0;
  const auto count = [&calls] { return ++calls > 0; };
  if (calls == 0)
    CHECK(count());
  else
    FAIL();
  EXPECT_EQ(calls, 1);
}

TEST(DcheckDeathTest, ChecksInDebugBuildsOnly) {
  int calls = 0;
  const auto fails = [&calls] {
    ++calls;
    return false;
  };
#ifdef PITH_DCHECK
  EXPECT_DEATH(DCHECK(fails()), "CHECK failed");
#else
  DCHECK(fails());
  EXPECT_EQ(calls, 0);
#endif
}

}  // namespace
}  // namespace pith
