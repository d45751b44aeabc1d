#include "eval/tasks/nearest_name.h"

#include <gtest/gtest.h>

#include <string>

namespace pith {
namespace {

constexpr absl::string_view kNames[] = {"prompt", "answer", "match", "max_tokens"};

TEST(NearestNameTest, FindsOneSlipOrTwo) {
  EXPECT_EQ(NearestName("awnser", kNames), "answer");
  EXPECT_EQ(NearestName("promt", kNames), "prompt");
  EXPECT_EQ(NearestName("matches", kNames), "match");
  EXPECT_EQ(NearestName("maxtoken", kNames), "max_tokens");
  EXPECT_EQ(NearestName("match", kNames), "match");
}

TEST(NearestNameTest, GivesNothingForWhatResemblesNone) {
  EXPECT_EQ(NearestName("temperature", kNames), "");
  EXPECT_EQ(NearestName("", kNames), "");
  EXPECT_EQ(NearestName(std::string(1000, 'a'), kNames), "");
  EXPECT_EQ(NearestName("answer", {}), "");
}

}  // namespace
}  // namespace pith
