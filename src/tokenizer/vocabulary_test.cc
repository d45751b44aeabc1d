#include "tokenizer/vocabulary.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(VocabularyTest, BothWaysAndHoles) {
  Vocabulary vocabulary;
  ASSERT_TRUE(vocabulary.Add("b", 5).ok());
  ASSERT_TRUE(vocabulary.Add("", 2).ok());
  EXPECT_EQ(vocabulary.Find("b"), 5);
  EXPECT_EQ(vocabulary.Find(""), 2);
  EXPECT_EQ(vocabulary.Find("c"), std::nullopt);
  EXPECT_EQ(vocabulary.Text(5), "b");
  EXPECT_EQ(vocabulary.end_id(), 6);
  EXPECT_EQ(vocabulary.size(), 2u);
  EXPECT_TRUE(vocabulary.Has(2));  // an empty text is a text
  EXPECT_FALSE(vocabulary.Has(0));
  EXPECT_FALSE(vocabulary.Has(-1));
  EXPECT_FALSE(vocabulary.Has(6));
  EXPECT_EQ(vocabulary.Text(6), "");
}

TEST(VocabularyTest, RefusesWhatIsTaken) {
  Vocabulary vocabulary;
  ASSERT_TRUE(vocabulary.Add("a", 0).ok());
  EXPECT_EQ(vocabulary.Add("a", 1).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(vocabulary.Add("b", 0).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(vocabulary.Add("c", -1).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(vocabulary.Add("c", kMaxTokenId + 1).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(vocabulary.size(), 1u);
}

TEST(VocabularyTest, ViewsStayValidWhileItGrowsAndMoves) {
  Vocabulary vocabulary;
  for (TokenId id = 0; id < 20000; ++id) ASSERT_TRUE(vocabulary.Add(absl::StrCat("token ", id), id).ok());
  const std::string large(200000, 'x');
  ASSERT_TRUE(vocabulary.Add(large, 20000).ok());
  const absl::string_view first = vocabulary.Text(0);
  const Vocabulary moved = std::move(vocabulary);
  EXPECT_EQ(first, "token 0");
  for (TokenId id = 0; id < 20000; id += 97) {
    EXPECT_EQ(moved.Text(id), absl::StrCat("token ", id));
    EXPECT_EQ(moved.Find(absl::StrCat("token ", id)), id);
  }
  EXPECT_EQ(moved.Text(20000), large);
}

}  // namespace
}  // namespace pith
