#include "eval/worst_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace pith {
namespace {

TEST(WorstTokensTest, KeepsTheLargestOfManyInOrder) {
  RandomStream random(6);
  std::vector<WorstToken> all;
  WorstTokens worst(10);
  for (int64_t i = 0; i < 1000; ++i) {
    all.push_back({.kl = random.Uniform(), .window = i});
    worst.Add(all.back());
  }
  std::sort(all.begin(), all.end(), [](const WorstToken& a, const WorstToken& b) { return a.kl > b.kl; });
  EXPECT_EQ(worst.Descending(), std::vector<WorstToken>(all.begin(), all.begin() + 10));
}

TEST(WorstTokensTest, OfEqualsTheEarlierIsKeptWhateverTheOrder) {
  std::vector<WorstToken> tokens;
  for (int64_t i = 0; i < 6; ++i) tokens.push_back({.kl = 1, .window = i / 3, .position = i % 3});
  for (int round = 0; round < 2; ++round) {
    WorstTokens worst(2);
    for (const WorstToken& token : tokens) worst.Add(token);
    const auto kept = worst.Descending();
    ASSERT_EQ(kept.size(), 2u);
    EXPECT_EQ(kept[0].position, 0);
    EXPECT_EQ(kept[1].position, 1);
    EXPECT_EQ(kept[1].window, 0);
    std::reverse(tokens.begin(), tokens.end());
  }
}

TEST(WorstTokensTest, FewerThanItsCapacityAndNone) {
  WorstTokens worst(3), none(0);
  worst.Add({.kl = 2});
  none.Add({.kl = 2});
  EXPECT_EQ(worst.Descending().size(), 1u);
  EXPECT_TRUE(none.Descending().empty());
}

}  // namespace
}  // namespace pith
