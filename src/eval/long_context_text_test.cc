#include "eval/long_context_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"

namespace pith {
namespace {

TEST(LongContextTextTest, SentencesAreDistinctWholeAndWithoutDigits) {
  std::set<absl::string_view> seen;
  for (const absl::string_view sentence : FillerSentences()) {
    EXPECT_TRUE(seen.insert(sentence).second) << sentence;
    EXPECT_TRUE(absl::ascii_isupper(sentence.front())) << sentence;
    EXPECT_EQ(sentence.back(), '.') << sentence;
    EXPECT_TRUE(std::none_of(sentence.begin(), sentence.end(), absl::ascii_isdigit)) << sentence;
  }
  EXPECT_GE(seen.size(), 100u);
}

TEST(LongContextTextTest, NoSentenceUsesAKeyWord) {
  std::set<std::string> keys;
  for (const absl::string_view word : KeyWords()) {
    EXPECT_TRUE(keys.emplace(word).second) << word;
    EXPECT_TRUE(std::all_of(word.begin(), word.end(), absl::ascii_islower)) << word;
  }
  EXPECT_GE(keys.size(), 150u);
  for (const absl::string_view sentence : FillerSentences()) {
    for (const absl::string_view word : absl::StrSplit(sentence, absl::ByAnyChar(" .,'"))) {
      EXPECT_EQ(keys.count(absl::AsciiStrToLower(word)), 0u) << word << " in: " << sentence;
    }
  }
}

}  // namespace
}  // namespace pith
