#include "tokenizer/bpe.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "rapidcheck.h"
#include "rapidcheck/gtest.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

// Tokens in order of id and merges as "left right", by rank.
TokenizerDefinition MakeDefinition(const std::vector<std::string>& tokens, const std::vector<std::pair<std::string, std::string>>& merges) {
  TokenizerDefinition definition;
  for (size_t id = 0; id < tokens.size(); ++id) EXPECT_TRUE(definition.vocabulary.Add(tokens[id], static_cast<TokenId>(id)).ok());
  for (const auto& [left, right] : merges) {
    const Vocabulary& vocabulary = definition.vocabulary;
    definition.merges.push_back({*vocabulary.Find(left), *vocabulary.Find(right), *vocabulary.Find(absl::StrCat(left, right))});
  }
  return definition;
}

std::vector<TokenId> EncodeOnce(const TokenizerDefinition& definition, absl::string_view word) {
  std::vector<TokenId> ids;
  BpeModel(definition, /*raw_bytes=*/false).EncodeWord(word, &ids);
  return ids;
}

std::vector<std::string> Texts(const TokenizerDefinition& definition, absl::string_view word) {
  std::vector<std::string> texts;
  for (const TokenId id : EncodeOnce(definition, word)) texts.emplace_back(definition.vocabulary.Text(id));
  return texts;
}

using Strings = std::vector<std::string>;

TEST(BpeTest, LowestRankThenLeftmost) {
  const TokenizerDefinition definition = MakeDefinition({"a", "b", "c", "bc", "ab", "aa"}, {{"b", "c"}, {"a", "b"}, {"a", "a"}});
  EXPECT_EQ(Texts(definition, "abc"), (Strings{"a", "bc"}));  // "b c" before "a b"
  EXPECT_EQ(Texts(definition, "abab"), (Strings{"ab", "ab"}));
  EXPECT_EQ(Texts(definition, "aaa"), (Strings{"aa", "a"}));  // of equal ranks the leftmost
  EXPECT_EQ(Texts(definition, "aab"), (Strings{"a", "ab"}));
  EXPECT_EQ(Texts(definition, ""), Strings{});
  EXPECT_EQ(Texts(definition, "c"), Strings{"c"});
}

TEST(BpeTest, ALaterMergeCanOpenAnEarlierOne) {
  // "ab c" has the lowest rank but needs "a b" first.
  const TokenizerDefinition definition = MakeDefinition({"a", "b", "c", "ab", "abc", "cc"}, {{"ab", "c"}, {"c", "c"}, {"a", "b"}});
  EXPECT_EQ(Texts(definition, "abcc"), (Strings{"ab", "cc"}));
  EXPECT_EQ(Texts(definition, "abc"), Strings{"abc"});
}

TEST(BpeTest, OfARepeatedMergeTheLastCounts) {
  const TokenizerDefinition definition = MakeDefinition({"a", "b", "c", "ab", "bc"}, {{"a", "b"}, {"b", "c"}, {"a", "b"}});
  EXPECT_EQ(Texts(definition, "abc"), (Strings{"a", "bc"}));
}

TEST(BpeTest, UnknownCharacters) {
  TokenizerDefinition definition = MakeDefinition({"<unk>", "a", "<0xC3>", "<0xA9>"}, {});
  EXPECT_EQ(EncodeOnce(definition, "aéa"), (std::vector<TokenId>{1, 1}));  // no unknown token: left out
  definition.unk_id = 0;
  EXPECT_EQ(EncodeOnce(definition, "xéa\U0001F600"), (std::vector<TokenId>{0, 0, 1, 0}));
  definition.fuse_unk = true;
  EXPECT_EQ(EncodeOnce(definition, "xéa\U0001F600"), (std::vector<TokenId>{0, 1, 0}));
  definition.byte_fallback = true;
  EXPECT_EQ(EncodeOnce(definition, "xéax"), (std::vector<TokenId>{0, 2, 3, 1, 0}));  // whole characters only
  EXPECT_EQ(EncodeOnce(definition, "\u00c3"), std::vector<TokenId>{0});              // C3 83: one byte has no token
}

TEST(BpeTest, WholeWordsBeforeMerges) {
  TokenizerDefinition definition = MakeDefinition({"a", "b", "ab", "aba"}, {{"a", "b"}});
  EXPECT_EQ(Texts(definition, "aba"), (Strings{"ab", "a"}));
  definition.ignore_merges = true;
  EXPECT_EQ(Texts(definition, "aba"), Strings{"aba"});
  definition.added_tokens = {{.id = 3, .content = "aba", .special = true}};
  EXPECT_EQ(Texts(definition, "aba"), (Strings{"ab", "a"}));  // never a special token
}

TEST(BpeTest, NoMergeMakesASpecialToken) {
  TokenizerDefinition definition = MakeDefinition({"a", "b", "ab", "abb"}, {{"a", "b"}, {"ab", "b"}});
  definition.added_tokens = {{.id = 3, .content = "abb", .special = true}};
  EXPECT_EQ(Texts(definition, "abb"), (Strings{"ab", "b"}));
  definition.added_tokens[0].special = false;
  EXPECT_EQ(Texts(definition, "abb"), Strings{"abb"});
}

TEST(BpeTest, RawBytesAreLookedUpInTheByteLevelAlphabet) {
  TokenizerDefinition definition;
  for (int byte = 0; byte < 256; ++byte) {
    std::string text;
    AppendUtf8(ByteLevelChar(static_cast<uint8_t>(byte)), &text);
    ASSERT_TRUE(definition.vocabulary.Add(text, byte).ok());
  }
  EXPECT_TRUE(BpeModel::HasWholeByteAlphabet(definition.vocabulary));
  ASSERT_TRUE(definition.vocabulary.Add("\u0120\u00C3", 256).ok());  // " \xC3"
  ASSERT_TRUE(definition.vocabulary.Add("\u0120\u0120", 257).ok());  // two spaces, as a whole word only
  definition.merges = {{0x20, 0xC3, 256}};
  definition.ignore_merges = true;
  const BpeModel model(definition, /*raw_bytes=*/true);
  std::vector<TokenId> ids;
  model.EncodeWord(" \xC3\xA9", &ids);
  EXPECT_EQ(ids, (std::vector<TokenId>{256, 0xA9}));
  ids.clear();
  model.EncodeWord("  ", &ids);
  EXPECT_EQ(ids, std::vector<TokenId>{257});
}

// What the definition of BPE says, in quadratic time.
std::vector<TokenId> EncodeByDefinition(const TokenizerDefinition& definition, absl::string_view word) {
  std::vector<TokenId> ids;
  for (size_t position = 0; position < word.size();) {
    const size_t begin = position;
    DecodeUtf8(word, &position);
    ids.push_back(*definition.vocabulary.Find(word.substr(begin, position - begin)));
  }
  for (;;) {
    size_t best_rank = definition.merges.size(), best_position = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      for (size_t rank = 0; rank < best_rank; ++rank) {
        const BpeMerge& merge = definition.merges[rank];
        if (merge.left != ids[i] || merge.right != ids[i + 1]) continue;
        best_rank = rank;
        best_position = i;
      }
    }
    if (best_rank == definition.merges.size()) return ids;
    ids[best_position] = definition.merges[best_rank].merged;
    ids.erase(ids.begin() + static_cast<int64_t>(best_position) + 1);
  }
}

// Tokens over a, b, U+2581 made by random merges of random earlier tokens, in random order of rank.
TokenizerDefinition RandomDefinition() {
  Strings tokens = {"a", "b", "\u2581"};
  std::vector<std::pair<std::string, std::string>> merges;
  const int count = *rc::gen::inRange(1, 25);
  for (int i = 0; i < count; ++i) {
    const std::string left = tokens[*rc::gen::inRange<size_t>(0, tokens.size())];
    const std::string right = tokens[*rc::gen::inRange<size_t>(0, tokens.size())];
    if (std::find(merges.begin(), merges.end(), std::make_pair(left, right)) != merges.end()) continue;
    if (std::find(tokens.begin(), tokens.end(), left + right) == tokens.end()) tokens.push_back(left + right);
    merges.insert(merges.begin() + static_cast<int64_t>(*rc::gen::inRange<size_t>(0, merges.size() + 1)), {left, right});
  }
  return MakeDefinition(tokens, merges);
}

RC_GTEST_PROP(BpePropertyTest, SameAsTheDefinition, ()) {
  const TokenizerDefinition definition = RandomDefinition();
  const BpeModel model(definition, /*raw_bytes=*/false);
  // Short words, and words longer than what is merged in place.
  for (const int length : {*rc::gen::inRange(1, 20), *rc::gen::inRange(60, 70), *rc::gen::inRange(100, 300)}) {
    std::string word;
    for (int i = 0; i < length; ++i) word += *rc::gen::element<std::string>("a", "a", "b", "\u2581");
    const std::vector<TokenId> expected = EncodeByDefinition(definition, word);
    for (int repeat = 0; repeat < 2; ++repeat) {  // the second time from the cache
      std::vector<TokenId> ids;
      model.EncodeWord(word, &ids);
      RC_ASSERT(ids == expected);
    }
  }
}

}  // namespace
}  // namespace pith
