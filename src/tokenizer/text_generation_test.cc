#include "tokenizer/text_generation.h"

#include <gtest/gtest.h>

namespace pith {
namespace {

// What is shown when `text` arrives in pieces of `size` bytes.
std::string Shown(const std::string& text, std::vector<std::string> stops, size_t size, bool* stopped = nullptr) {
  StopMatcher matcher(std::move(stops));
  std::string shown;
  for (size_t i = 0; i < text.size(); i += size) shown += matcher.Append(text.substr(i, size));
  shown += matcher.Finish();
  if (stopped != nullptr) *stopped = matcher.stopped();
  return shown;
}

TEST(StopMatcherTest, EndsBeforeTheEarliestStopStringHoweverTheTextArrives) {
  for (size_t size = 1; size <= 12; ++size) {
    bool stopped = false;
    EXPECT_EQ(Shown("one two three", {"three", "two"}, size, &stopped), "one ");
    EXPECT_TRUE(stopped);
    EXPECT_EQ(Shown("aaab", {"aab"}, size), "a");
    EXPECT_EQ(Shown("abcabd!", {"abd"}, size), "abc");
    EXPECT_EQ(Shown("no stop here", {"stop!"}, size, &stopped), "no stop here");
    EXPECT_FALSE(stopped);
    EXPECT_EQ(Shown("text", {}, size), "text");
  }
}

TEST(StopMatcherTest, ShowsEverythingThatCannotBecomeAStopStringAtOnce) {
  StopMatcher matcher({"###", "END"});
  EXPECT_EQ(matcher.Append("hello #"), "hello ");
  EXPECT_EQ(matcher.Append("# E"), "## ");
  EXPECT_EQ(matcher.Append("x"), "Ex");
  EXPECT_EQ(matcher.Append("EN"), "");
  EXPECT_EQ(matcher.Finish(), "EN");
}

TEST(StopMatcherTest, NothingComesAfterAMatch) {
  StopMatcher matcher({"."});
  EXPECT_EQ(matcher.Append("a.b"), "a");
  EXPECT_EQ(matcher.Append("c"), "");
  EXPECT_EQ(matcher.Finish(), "");
}

}  // namespace
}  // namespace pith
