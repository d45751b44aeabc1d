#include "comm/comm.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::ElementsAre;

TEST(SingleProcess, IsTheGroupOfOneRank) {
  const auto group = SingleProcess();
  EXPECT_EQ(group->rank(), 0);
  EXPECT_EQ(group->size(), 1);
}

TEST(SingleProcess, OperationsAreTheIdentity) {
  const auto group = SingleProcess();
  std::vector<float> values = {1.5f, -2.0f};
  EXPECT_TRUE(group->AllReduceSum(absl::MakeSpan(values)).ok());
  EXPECT_THAT(values, ElementsAre(1.5f, -2.0f));
  std::vector<uint8_t> bytes = {7, 8};
  EXPECT_TRUE(group->Broadcast(absl::MakeSpan(bytes), 0).ok());
  EXPECT_THAT(bytes, ElementsAre(7, 8));
  EXPECT_TRUE(group->Barrier().ok());
  EXPECT_TRUE(group->AllReduceSum({}).ok());
}

TEST(SingleProcess, ABadRootIsRefusedAndTheGroupStaysUsable) {
  const auto group = SingleProcess();
  std::vector<uint8_t> bytes = {7};
  for (const int root : {-1, 1}) EXPECT_EQ(group->Broadcast(absl::MakeSpan(bytes), root).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(group->Barrier().ok());
}

}  // namespace
}  // namespace pith
