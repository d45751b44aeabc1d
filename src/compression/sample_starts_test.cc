#include "compression/sample_starts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tokenizer/utf8.h"

namespace pith {
namespace {

using ::testing::ElementsAre;
using ::testing::Key;

TEST(SampleStartsTest, BothTablesHaveEveryDomain) {
  for (const auto starts : {RawStarts(), UserMessages()}) {
    std::map<absl::string_view, int> count;
    for (const SampleStart& start : starts) ++count[start.domain];
    EXPECT_THAT(count, ElementsAre(Key("code"), Key("dialogue"), Key("math"), Key("multilingual"), Key("prose"), Key("questions")));
    for (const auto& [domain, n] : count) EXPECT_GE(n, 6) << domain;
  }
}

TEST(SampleStartsTest, TextsAreDistinctAndDoNotEndInASpace) {
  for (const auto starts : {RawStarts(), UserMessages()}) {
    std::set<absl::string_view> seen;
    for (const SampleStart& start : starts) {
      ASSERT_FALSE(start.text.empty());
      EXPECT_NE(start.text.back(), ' ') << start.text;
      EXPECT_TRUE(seen.insert(start.text).second) << start.text;
      EXPECT_TRUE(IsValidUtf8(start.text)) << start.text;
    }
  }
}

}  // namespace
}  // namespace pith
