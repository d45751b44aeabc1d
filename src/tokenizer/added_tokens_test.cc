#include "tokenizer/added_tokens.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using Strings = std::vector<std::string>;

AddedTokenMatcher MakeMatcher(const std::vector<AddedToken>& tokens) {
  Strings contents;
  for (const AddedToken& token : tokens) contents.push_back(token.content);
  return AddedTokenMatcher(tokens, contents);
}

// Segments as texts, tokens as "id:text".
Strings Split(const AddedTokenMatcher& matcher, absl::string_view text, bool match_special = true) {
  Strings shown;
  for (const TextSegment& segment : matcher.Split(text, match_special)) {
    const std::string part(text.substr(segment.begin, segment.end - segment.begin));
    shown.push_back(segment.id >= 0 ? absl::StrCat(segment.id, ":", part) : part);
  }
  return shown;
}

TEST(AddedTokensTest, LeftmostThenLongest) {
  const AddedTokenMatcher matcher = MakeMatcher(
      {{.id = 1, .content = "ab"}, {.id = 2, .content = "abcd"}, {.id = 3, .content = "bcdef"}, {.id = 4, .content = "b"}});
  EXPECT_EQ(Split(matcher, "xabcdefab"), (Strings{"x", "2:abcd", "ef", "1:ab"}));
  EXPECT_EQ(Split(matcher, "abc"), (Strings{"1:ab", "c"}));
  EXPECT_EQ(Split(matcher, "bb"), (Strings{"4:b", "4:b"}));
  EXPECT_EQ(Split(matcher, "xyz"), Strings{"xyz"});
  EXPECT_EQ(Split(matcher, ""), Strings{});
}

TEST(AddedTokensTest, SpecialTokensCanStayText) {
  const AddedTokenMatcher matcher = MakeMatcher(
      {{.id = 1, .content = "<s>", .special = true}, {.id = 2, .content = "s"}, {.id = 3, .content = "<"}});
  EXPECT_EQ(Split(matcher, "a<s>s<", true), (Strings{"a", "1:<s>", "2:s", "3:<"}));
  // What matches a special token is skipped as a whole: the "<" and "s" in it are not found.
  EXPECT_EQ(Split(matcher, "a<s>s<", false), (Strings{"a<s>", "2:s", "3:<"}));
}

// "<s>" is special and so is ">x"; the brackets of the first case mark what the user wrote.
TEST(AddedTokensTest, SpecialTokensThatTouchUserTextStayText) {
  const AddedTokenMatcher matcher = MakeMatcher(
      {{.id = 1, .content = "<s>", .special = true}, {.id = 2, .content = ">x", .special = true}, {.id = 3, .content = "u"}});
  const auto split = [&](absl::string_view text, const std::vector<ByteRange>& user_text) {
    Strings shown;
    for (const TextSegment& segment : matcher.Split(text, true, user_text)) {
      shown.push_back(absl::StrCat(segment.id, ":", text.substr(segment.begin, segment.end - segment.begin)));
    }
    return shown;
  };
  EXPECT_EQ(split("<s>[<s>u]<s>", {{3, 8}}), (Strings{"1:<s>", "-1:[<s>", "3:u", "-1:]", "1:<s>"}));
  EXPECT_EQ(split("a<s>", {{0, 1}}), (Strings{"-1:a", "1:<s>"}));  // side by side is not touching
  EXPECT_EQ(split("<s>", {{2, 3}}), Strings{"-1:<s>"});            // one byte is enough
  EXPECT_EQ(split("<s>x", {{0, 2}}), (Strings{"-1:<s", "2:>x"}));  // the user's "<s" does not hide the template's ">x"
  EXPECT_EQ(split("<s><s><s><s>", {{0, 3}, {6, 9}}), (Strings{"-1:<s>", "1:<s>", "-1:<s>", "1:<s>"}));
}

TEST(AddedTokensTest, SingleWord) {
  const AddedTokenMatcher matcher = MakeMatcher({{.id = 1, .content = "day", .single_word = true}});
  EXPECT_EQ(Split(matcher, "day days xday day-day \u00e9day"), (Strings{"1:day", " days xday ", "1:day", "-", "1:day", " \u00e9day"}));
  EXPECT_EQ(Split(matcher, "day\u0301"), Strings{"day\u0301"});  // a mark is part of a word
}

TEST(AddedTokensTest, Strips) {
  const AddedTokenMatcher matcher = MakeMatcher({{.id = 1, .content = "<l>", .lstrip = true}, {.id = 2, .content = "<r>", .rstrip = true}});
  EXPECT_EQ(Split(matcher, "a \t<l> b"), (Strings{"a", "1: \t<l>", " b"}));
  EXPECT_EQ(Split(matcher, "a <r>\n\u3000 b"), (Strings{"a ", "2:<r>\n\u3000 ", "b"}));
  EXPECT_EQ(Split(matcher, "<r>  <l>"), (Strings{"2:<r>  ", "1:<l>"}));  // the first has taken the spaces
  EXPECT_EQ(Split(matcher, "  <l>"), Strings{"1:  <l>"});
}

TEST(AddedTokensTest, ATokenInsideStrippedSpace) {
  const AddedTokenMatcher matcher = MakeMatcher({{.id = 1, .content = "<r>", .rstrip = true}, {.id = 2, .content = "\n\n"}});
  EXPECT_EQ(Split(matcher, "<r>\n\n\nx"), (Strings{"1:<r>\n\n\n", "2:", "x"}));
}

TEST(AddedTokensTest, EmptyMatchersAndContents) {
  EXPECT_EQ(Split(AddedTokenMatcher(), "abc"), Strings{"abc"});
  EXPECT_TRUE(AddedTokenMatcher().empty());
  const AddedTokenMatcher vanished({{.id = 1, .content = "x"}}, {""});  // normalized to nothing
  EXPECT_EQ(Split(vanished, "axb"), Strings{"axb"});
}

}  // namespace
}  // namespace pith
