#include "tokenizer/word_cache.h"

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(WordCacheTest, RemembersAndReplaces) {
  WordCache cache;
  std::vector<TokenId> ids = {7};
  EXPECT_FALSE(cache.Find("word", 1, &ids));
  cache.Insert("word", 1, {3, 4});
  EXPECT_TRUE(cache.Find("word", 1, &ids));
  EXPECT_EQ(ids, (std::vector<TokenId>{7, 3, 4}));
  EXPECT_FALSE(cache.Find("ward", 1, &ids));  // the same slot, another word
  EXPECT_FALSE(cache.Find("words", 1, &ids));
  cache.Insert("ward", 1, {});  // a word may have no ids
  EXPECT_TRUE(cache.Find("ward", 1, &ids));
  EXPECT_FALSE(cache.Find("word", 1, &ids));
  EXPECT_EQ(ids.size(), 3u);
}

TEST(WordCacheTest, LeavesOutWhatDoesNotFit) {
  WordCache cache;
  std::vector<TokenId> ids;
  const std::string longest(WordCache::kMaxWordBytes, 'x'), longer(WordCache::kMaxWordBytes + 1, 'x');
  cache.Insert(longest, 5, std::vector<TokenId>(WordCache::kMaxIds, 9));
  EXPECT_TRUE(cache.Find(longest, 5, &ids));
  EXPECT_EQ(ids, std::vector<TokenId>(WordCache::kMaxIds, 9));
  cache.Insert(longer, 6, {1});
  EXPECT_FALSE(cache.Find(longer, 6, &ids));
  cache.Insert("many", 7, std::vector<TokenId>(WordCache::kMaxIds + 1, 9));
  EXPECT_FALSE(cache.Find("many", 7, &ids));
  EXPECT_FALSE(cache.Find("", 8, &ids));
}

TEST(WordCacheTest, ConcurrentUseNeverMixesWords) {
  WordCache cache;
  std::vector<std::thread> threads;
  std::vector<int> wrong(3, 0);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (TokenId i = 0; i < 20000; ++i) {
        const TokenId value = i % 50;
        const std::string word = absl::StrCat("w", value);
        std::vector<TokenId> ids;
        if (cache.Find(word, value % 7, &ids)) wrong[t] += ids != std::vector<TokenId>{value, value + 1};
        cache.Insert(word, value % 7, {value, value + 1});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(3, 0));
}

}  // namespace
}  // namespace pith
