#include "eval/tasks/task_item.h"

#include <gtest/gtest.h>

namespace pith {
namespace {

TEST(TaskItemTest, NamesAndKindsOfMatchesAgree) {
  for (const absl::string_view name : MatchNames()) {
    const auto kind = MatchFromName(name);
    ASSERT_TRUE(kind.has_value()) << name;
    EXPECT_EQ(MatchName(*kind), name);
  }
  EXPECT_EQ(MatchName(MatchKind::kExact), "exact");
  EXPECT_EQ(MatchName(MatchKind::kContainsAll), "contains_all");
  EXPECT_EQ(MatchName(MatchKind::kCode), "code");
  EXPECT_EQ(MatchName(MatchKind::kContinuation), "continuation");
  EXPECT_EQ(MatchFromName("Exact"), std::nullopt);
}

TEST(TaskItemTest, ChoicesAndContinuationsAreScoredByLikelihood) {
  EXPECT_TRUE(IsScoredByLikelihood(MatchKind::kChoice));
  EXPECT_TRUE(IsScoredByLikelihood(MatchKind::kContinuation));
  EXPECT_FALSE(IsScoredByLikelihood(MatchKind::kCode));
  EXPECT_FALSE(IsScoredByLikelihood(MatchKind::kNumber));
}

}  // namespace
}  // namespace pith
