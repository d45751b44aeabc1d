#include "tokenizer/template_text.h"

#include <string>
#include <utility>

#include "base/random.h"
#include "gtest/gtest.h"

namespace pith::jinja {
namespace {

// "ab[cd]e": user runs in brackets.
std::string Show(const Text& text) {
  std::string shown;
  size_t begin = 0;
  for (const TextRun& run : text.runs()) {
    const std::string part = text.bytes().substr(begin, run.end - begin);
    shown += run.user ? "[" + part + "]" : part;
    begin = run.end;
  }
  EXPECT_EQ(begin, text.bytes().size());
  return shown;
}

TextPtr Mixed() {
  TextBuilder builder;
  builder.Append("ab", false);
  builder.Append("cé", true);
  builder.Append("", false);
  builder.Append("d", true);
  builder.Append("ef", false);
  return std::move(builder).Build();
}

TEST(TemplateText, BuilderJoinsRunsOfOneOrigin) {
  EXPECT_EQ(Show(*Mixed()), "ab[céd]ef");
  EXPECT_EQ(Mixed()->runs().size(), 3u);
  EXPECT_EQ(Mixed()->length(), 7);
  EXPECT_FALSE(Mixed()->is_ascii());
  EXPECT_TRUE(Mixed()->has_user_text());
  EXPECT_FALSE(MakeText("x")->has_user_text());
  EXPECT_TRUE(MakeText("x", true)->has_user_text());
  EXPECT_EQ(MakeText("")->runs().size(), 0u);
}

TEST(TemplateText, SlicesKeepOrigin) {
  const TextPtr text = Mixed();
  EXPECT_EQ(Show(*SliceText(text, 0, 2)), "ab");
  EXPECT_EQ(Show(*SliceText(text, 1, 3)), "b[c]");
  EXPECT_EQ(Show(*SliceText(text, 2, 6)), "[céd]");
  EXPECT_EQ(Show(*SliceText(text, 5, 8)), "[d]ef");
  EXPECT_EQ(Show(*SliceText(text, 4, 4)), "");
  EXPECT_EQ(SliceText(text, 0, 8), text);
}

TEST(TemplateText, OffsetsOfCodePoints) {
  const TextPtr text = MakeText("aé漢😀z");
  EXPECT_EQ(text->ByteOffset(0), 0u);
  EXPECT_EQ(text->ByteOffset(2), 3u);
  EXPECT_EQ(text->ByteOffset(4), 10u);
  EXPECT_EQ(text->ByteOffset(5), 11u);
  EXPECT_EQ(text->CodePointIndex(6), 3);
  EXPECT_EQ(MakeText("abc")->ByteOffset(2), 2u);
}

TEST(TemplateText, CursorReportsOrigin) {
  const TextPtr text = Mixed();
  TextCursor cursor(*text);
  std::string users;
  std::u32string points;
  while (cursor.Next()) {
    users += cursor.user ? 'u' : 't';
    points += cursor.code_point;
  }
  EXPECT_EQ(users, "ttuuutt");
  EXPECT_EQ(points, U"abcédef");
}

TEST(TemplateText, SearchEqualsStdFind) {
  RandomStream random(1);
  const auto word = [&](uint64_t longest) {
    std::string text(random.Below(longest + 1), 'a');
    for (char& c : text) c = random.Below(2) == 0 ? 'a' : 'b';
    return text;
  };
  for (int i = 0; i < 2000; ++i) {
    const std::string haystack = word(20), needle = word(4);
    ASSERT_EQ(FindBytes(haystack, needle, 0, haystack.size()), haystack.find(needle)) << haystack << " " << needle;
    ASSERT_EQ(FindLastBytes(haystack, needle, 0, haystack.size()), haystack.rfind(needle)) << haystack << " " << needle;
  }
}

TEST(TemplateText, SearchStaysInsideTheWindow) {
  EXPECT_EQ(FindBytes("abcabc", "abc", 1, 6), 3u);
  EXPECT_EQ(FindBytes("abcabc", "abc", 1, 5), absl::string_view::npos);
  EXPECT_EQ(FindLastBytes("abcabc", "abc", 0, 5), 0u);
  EXPECT_EQ(FindLastBytes("abcabc", "abc", 1, 5), absl::string_view::npos);
}

TEST(TemplateText, ConcatenationOfSlicesIsTheWhole) {
  RandomStream random(2);
  for (int i = 0; i < 500; ++i) {
    TextBuilder builder;
    for (uint64_t parts = random.Below(6); parts > 0; --parts) builder.Append(std::string(random.Below(4), 'x'), random.Below(2) == 1);
    const TextPtr whole = std::move(builder).Build();
    const size_t cut = random.Below(whole->bytes().size() + 1);
    TextBuilder joined;
    joined.Append(*SliceText(whole, 0, cut));
    joined.Append(*SliceText(whole, cut, whole->bytes().size()));
    ASSERT_EQ(Show(*std::move(joined).Build()), Show(*whole));
  }
}

}  // namespace
}  // namespace pith::jinja
