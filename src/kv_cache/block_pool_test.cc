#include "kv_cache/block_pool.h"

#include <map>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rapidcheck.h"
#include "rapidcheck/gtest.h"

namespace pith {
namespace {

TEST(BlockPool, GrowTakesBlocksByTokens) {
  BlockPool pool(4);
  BlockTable table;
  ASSERT_TRUE(pool.Grow(table, 1).ok());
  EXPECT_EQ(table.blocks.size(), 1u);
  EXPECT_EQ(table.capacity(), kBlockSizeTokens);
  EXPECT_EQ(table.num_tokens, 0);
  ASSERT_TRUE(pool.Grow(table, kBlockSizeTokens).ok());
  EXPECT_EQ(table.blocks.size(), 1u);
  ASSERT_TRUE(pool.Grow(table, kBlockSizeTokens + 1).ok());
  EXPECT_EQ(table.blocks.size(), 2u);
  EXPECT_EQ(pool.num_free(), 2);
  ASSERT_TRUE(pool.Grow(table, 1).ok());  // asking for less than there is keeps what there is
  EXPECT_EQ(table.blocks.size(), 2u);
}

TEST(BlockPool, GrowTakesAllOrNothing) {
  BlockPool pool(3);
  BlockTable table;
  ASSERT_TRUE(pool.Grow(table, kBlockSizeTokens).ok());
  const absl::Status status = pool.Grow(table, 5 * kBlockSizeTokens);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("expected 4 free blocks"));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("found 2 of 3"));
  EXPECT_EQ(table.blocks.size(), 1u);
  EXPECT_EQ(pool.num_free(), 2);
}

TEST(BlockPool, TruncateKeepsThePartlyFilledBlock) {
  BlockPool pool(4);
  BlockTable table;
  ASSERT_TRUE(pool.Grow(table, 3 * kBlockSizeTokens).ok());
  table.num_tokens = 3 * kBlockSizeTokens;
  const std::vector<int32_t> before = table.blocks;
  pool.Truncate(table, kBlockSizeTokens + 1);
  EXPECT_EQ(table.num_tokens, kBlockSizeTokens + 1);
  EXPECT_THAT(table.blocks, testing::ElementsAre(before[0], before[1]));
  pool.Truncate(table, kBlockSizeTokens);
  EXPECT_THAT(table.blocks, testing::ElementsAre(before[0]));
  pool.Truncate(table, 2 * kBlockSizeTokens);  // never grows
  EXPECT_EQ(table.num_tokens, kBlockSizeTokens);
  EXPECT_EQ(table.blocks.size(), 1u);
}

TEST(BlockPool, ShareRoundsDownAndCountsHolders) {
  BlockPool pool(4);
  BlockTable table;
  ASSERT_TRUE(pool.Grow(table, 3 * kBlockSizeTokens).ok());
  table.num_tokens = 3 * kBlockSizeTokens - 1;
  BlockTable shared = pool.Share(table, 3 * kBlockSizeTokens - 1);
  EXPECT_EQ(shared.num_tokens, 2 * kBlockSizeTokens);
  EXPECT_THAT(shared.blocks, testing::ElementsAre(table.blocks[0], table.blocks[1]));
  EXPECT_EQ(pool.ref_count(table.blocks[0]), 2);
  EXPECT_EQ(pool.ref_count(table.blocks[2]), 1);
  pool.Release(table);
  EXPECT_EQ(pool.num_free(), 2);  // the shared two live on
  EXPECT_TRUE(table.blocks.empty());
  pool.Release(shared);
  EXPECT_EQ(pool.num_free(), 4);
}

// Counts holders of every block over all tables and compares with the pool: used + free = total, and each count is exact.
void CheckAgainstTables(const BlockPool& pool, const std::vector<BlockTable>& tables) {
  std::map<int32_t, int32_t> holders;
  for (const BlockTable& table : tables) {
    std::set<int32_t> distinct(table.blocks.begin(), table.blocks.end());
    RC_ASSERT(distinct.size() == table.blocks.size());
    RC_ASSERT(table.num_tokens <= table.capacity());
    for (const int32_t block : table.blocks) ++holders[block];
  }
  for (int32_t block = 0; block < pool.num_blocks(); ++block) {
    const auto it = holders.find(block);
    RC_ASSERT(pool.ref_count(block) == (it == holders.end() ? 0 : it->second));
  }
  RC_ASSERT(pool.num_free() + static_cast<int64_t>(holders.size()) == pool.num_blocks());
}

RC_GTEST_PROP(BlockPool, AnySequenceOfOperationsKeepsTheCounts, ()) {
  constexpr int64_t kBlocks = 12;
  BlockPool pool(kBlocks);
  std::vector<BlockTable> tables(4);
  const int num_steps = *rc::gen::inRange(1, 60);
  for (int step = 0; step < num_steps; ++step) {
    BlockTable& table = tables[*rc::gen::inRange<size_t>(0, tables.size())];
    const int64_t tokens = *rc::gen::inRange<int64_t>(0, 6 * kBlockSizeTokens);
    switch (*rc::gen::inRange(0, 4)) {
      case 0: {
        const std::vector<int32_t> before = table.blocks;
        const int64_t missing = BlockPool::BlocksForTokens(tokens) - static_cast<int64_t>(before.size());
        const bool fits = missing <= pool.num_free();
        const bool grown = pool.Grow(table, tokens).ok();
        RC_ASSERT(grown == fits);
        RC_ASSERT(std::equal(before.begin(), before.end(), table.blocks.begin()));
        RC_ASSERT(table.blocks.size() == before.size() + (fits ? std::max<int64_t>(0, missing) : 0));
        table.num_tokens = std::min(table.capacity(), std::max(table.num_tokens, tokens));
        break;
      }
      case 1: {
        const int64_t expected = std::min(table.num_tokens, tokens);
        pool.Truncate(table, tokens);
        RC_ASSERT(table.num_tokens == expected);
        RC_ASSERT(static_cast<int64_t>(table.blocks.size()) <= BlockPool::BlocksForTokens(tokens));
        break;
      }
      case 2:
        pool.Release(table);
        RC_ASSERT(table.blocks.empty() && table.num_tokens == 0);
        break;
      default: {
        BlockTable& other = tables[*rc::gen::inRange<size_t>(0, tables.size())];
        BlockTable copy = pool.Share(table, std::min(tokens, table.num_tokens));
        RC_ASSERT(copy.num_tokens == copy.capacity());
        RC_ASSERT(std::equal(copy.blocks.begin(), copy.blocks.end(), table.blocks.begin()));
        pool.Release(other);
        other = std::move(copy);
      }
    }
    CheckAgainstTables(pool, tables);
  }
  for (BlockTable& table : tables) pool.Release(table);
  RC_ASSERT(pool.num_free() == kBlocks);
}

}  // namespace
}  // namespace pith
