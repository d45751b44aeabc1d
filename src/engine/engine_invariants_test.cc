#include "engine/engine_invariants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kv_cache/block_pool.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

EngineSnapshot Valid() {
  EngineSnapshot snapshot{.num_blocks = 8, .num_free_blocks = 5, .max_sequences = 2};
  snapshot.sequences.push_back({.id = 1, .running = true, .num_tokens = 40, .num_computed = 39, .max_model_len = 100, .blocks = {0, 3}});
  snapshot.sequences.push_back({.id = 2, .running = true, .num_tokens = 9, .num_computed = 8, .max_model_len = 100, .blocks = {5}});
  snapshot.sequences.push_back({.id = 3, .running = false, .num_tokens = 9, .num_computed = 0, .max_model_len = 100, .blocks = {}});
  return snapshot;
}

TEST(EngineInvariantsTest, AcceptsAConsistentSnapshot) { EXPECT_TRUE(CheckInvariants(Valid()).ok()); }

TEST(EngineInvariantsTest, NamesEveryBrokenRule) {
  const auto message = [](auto spoil) {
    EngineSnapshot snapshot = Valid();
    spoil(snapshot);
    return std::string(CheckInvariants(snapshot).message());
  };
  EXPECT_THAT(message([](auto& s) { s.sequences[1].blocks = {3}; }), HasSubstr("owned by requests 1 and 2"));
  EXPECT_THAT(message([](auto& s) { s.sequences[1].blocks = {8}; }), HasSubstr("does not exist"));
  EXPECT_THAT(message([](auto& s) { s.num_free_blocks = 4; }), HasSubstr("used + free"));
  EXPECT_THAT(message([](auto& s) { s.sequences[2].blocks = {7}; }), HasSubstr("waiting sequence to hold nothing"));
  EXPECT_THAT(message([](auto& s) { s.sequences[0].num_computed = 40; }), HasSubstr("fewer computed than known"));
  EXPECT_THAT(message([](auto& s) { s.sequences[0].num_computed = 20; }), HasSubstr("the blocks of 20 tokens"));
  EXPECT_THAT(message([](auto& s) { s.sequences[0].max_model_len = 39; }), HasSubstr("at most 39 tokens"));
  EXPECT_THAT(message([](auto& s) { s.max_sequences = 1; }), HasSubstr("at most 1 running"));
}

}  // namespace
}  // namespace pith
