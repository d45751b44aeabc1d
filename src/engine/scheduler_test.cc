#include "engine/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "kv_cache/block_pool.h"

namespace pith {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr SchedulerLimits kLimits{.max_batch_tokens = 100, .max_sequences = 4, .prefill_chunk = 64};

SchedulerEntry Waiting(RequestId id, int64_t num_tokens, int priority = 0) {
  return {.id = id, .priority = priority, .arrival = id, .num_tokens = num_tokens};
}

SchedulerEntry Running(RequestId id, int64_t num_tokens, int64_t num_computed) {
  return {.id = id,
          .arrival = id,
          .num_tokens = num_tokens,
          .num_computed = num_computed,
          .num_blocks = BlockPool::BlocksForTokens(num_computed)};
}

std::vector<std::pair<RequestId, int64_t>> Rows(const StepPlan& plan) {
  std::vector<std::pair<RequestId, int64_t>> rows;
  for (const PlannedRows& planned : plan.rows) rows.emplace_back(planned.id, planned.num_rows);
  return rows;
}

TEST(SchedulerTest, DecodeRowsComeBeforePrefillChunksOfEarlierSequences) {
  const StepPlan plan = PlanStep({Running(1, 300, 64), Running(2, 33, 32)}, {}, 100, kLimits);
  EXPECT_THAT(Rows(plan), ElementsAre(std::pair(RequestId{2}, 1), std::pair(RequestId{1}, 64)));
  EXPECT_TRUE(plan.rows[0].reaches_end);
  EXPECT_FALSE(plan.rows[1].reaches_end);
  EXPECT_EQ(plan.rows[1].first_position, 64);
}

TEST(SchedulerTest, AdmitsInOrderOfPriorityThenArrivalWithinTheTokenBudget) {
  const StepPlan plan = PlanStep({}, {Waiting(1, 60), Waiting(2, 60), Waiting(3, 10, -1)}, 100, kLimits);
  EXPECT_THAT(plan.admitted, ElementsAre(3, 1, 2));
  EXPECT_THAT(Rows(plan), ElementsAre(std::pair(RequestId{3}, 10), std::pair(RequestId{1}, 60), std::pair(RequestId{2}, 30)));
  EXPECT_EQ(plan.num_rows, 100);
}

TEST(SchedulerTest, AdmitsAtMostMaxSequencesAndNobodyOvertakesTheHeadOfTheQueue) {
  EXPECT_THAT(PlanStep({Running(1, 2, 1), Running(2, 2, 1), Running(3, 2, 1)}, {Waiting(4, 5), Waiting(5, 5)}, 100, kLimits).admitted,
              ElementsAre(4));
  // 3 blocks are free; the head needs 4.
  EXPECT_THAT(PlanStep({Running(1, 2, 1)}, {Waiting(2, 3 * kBlockSizeTokens), Waiting(3, 1)}, 3, kLimits).admitted, IsEmpty());
}

TEST(SchedulerTest, AnAdmittedSequenceLeavesThePromisedBlocksOfEarlierPrefills) {
  // Request 1 holds 2 blocks and will need 4 in all; 3 are free, so one is left beside the promise: enough for 31 tokens and the next.
  const SchedulerLimits limits{.max_batch_tokens = 200, .max_sequences = 4, .prefill_chunk = 32};
  EXPECT_THAT(PlanStep({Running(1, 128, 64)}, {Waiting(2, 31)}, 3, limits).admitted, ElementsAre(2));
  EXPECT_THAT(PlanStep({Running(1, 128, 64)}, {Waiting(2, 32)}, 3, limits).admitted, IsEmpty());
  // The same for one admitted in this step: request 1 takes 1 of 5 blocks and is promised 3; request 2 and its next token need 2.
  EXPECT_THAT(PlanStep({}, {Waiting(1, 128), Waiting(2, 32)}, 5, limits).admitted, ElementsAre(1));
  EXPECT_THAT(PlanStep({}, {Waiting(1, 128), Waiting(2, 31)}, 5, limits).admitted, ElementsAre(1, 2));
}

TEST(SchedulerTest, PreemptsTheLastInPolicyOrderWhenBlocksRunOut) {
  const StepPlan plan = PlanStep({Running(1, 33, 32), Running(2, 33, 32), Running(3, 20, 19)}, {Waiting(4, 5)}, 0, kLimits);
  EXPECT_THAT(plan.preempted, ElementsAre(3));  // its one block serves request 1; request 2 waits for blocks of those before it
  EXPECT_THAT(Rows(plan), ElementsAre(std::pair(RequestId{1}, 1)));
  EXPECT_THAT(plan.admitted, IsEmpty());
}

TEST(SchedulerTest, NobodyIsAdmittedInAStepThatPreempts) {
  // Request 2's three blocks are more than request 1 needs, and request 3 would fit into the rest.
  const StepPlan plan = PlanStep({Running(1, 33, 32), Running(2, 96, 95)}, {Waiting(3, 5)}, 0, kLimits);
  EXPECT_THAT(plan.preempted, ElementsAre(2));
  EXPECT_THAT(plan.admitted, IsEmpty());
}

TEST(SchedulerTest, ADecodeRowOfALaterSequenceYieldsItsBlockToAnEarlierPrefill) {
  const StepPlan plan = PlanStep({Running(1, 64, 32), Running(2, 10, 9)}, {}, 0, kLimits);
  EXPECT_THAT(plan.preempted, ElementsAre(2));
  EXPECT_THAT(Rows(plan), ElementsAre(std::pair(RequestId{1}, 32)));
  EXPECT_EQ(plan.num_rows, 32);
}

TEST(SchedulerTest, AYieldedRowReturnsTheBlockThatWasPlannedForItAndItsPlaceInTheBudget) {
  // The decode row of request 2 takes the one free block; request 1 needs two: that one and the one that request 2 held.
  const SchedulerLimits limits{.max_batch_tokens = 64, .max_sequences = 4, .prefill_chunk = 64};
  const StepPlan plan = PlanStep({Running(1, 96, 32), Running(2, 33, 32)}, {}, 1, limits);
  EXPECT_THAT(plan.preempted, ElementsAre(2));
  EXPECT_THAT(Rows(plan), ElementsAre(std::pair(RequestId{1}, 64)));
  EXPECT_EQ(plan.num_rows, 64);
}

TEST(SchedulerTest, AWholeCacheIsEnoughForOneSequenceThatFillsIt) {
  EXPECT_THAT(PlanStep({}, {Waiting(1, 64)}, 2, kLimits).admitted, ElementsAre(1));
}

TEST(SchedulerTest, MaxRowsCapsOneSequence) {
  SchedulerEntry entry = Waiting(1, 60);
  entry.max_rows = 7;
  EXPECT_THAT(Rows(PlanStep({}, {entry}, 10, kLimits)), ElementsAre(std::pair(RequestId{1}, 7)));
}

// A naive simulation: whatever the load, blocks never go negative, rows stay in the budget, and every request finishes.
TEST(SchedulerTest, RandomLoadsKeepTheBudgetsAndAlwaysFinish) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    RandomStream random(seed);
    const int64_t total_blocks = 4 + static_cast<int64_t>(random.Below(8));
    const SchedulerLimits limits{.max_batch_tokens = 1 + static_cast<int64_t>(random.Below(80)),
                                 .max_sequences = 1 + static_cast<int64_t>(random.Below(4)),
                                 .prefill_chunk = 1 + static_cast<int64_t>(random.Below(64))};
    std::map<RequestId, SchedulerEntry> running, waiting;
    std::map<RequestId, int64_t> target;
    for (RequestId id = 1; id <= 8; ++id) {
      const int64_t length = 1 + static_cast<int64_t>(random.Below(static_cast<uint64_t>(total_blocks * kBlockSizeTokens)));
      waiting[id] = Waiting(id, 1 + static_cast<int64_t>(random.Below(static_cast<uint64_t>(length))), static_cast<int>(random.Below(2)));
      target[id] = length;
    }
    int64_t free = total_blocks;
    for (int step = 0; !running.empty() || !waiting.empty(); ++step) {
      ASSERT_LT(step, 200000) << "seed " << seed;
      std::vector<SchedulerEntry> r, w;
      for (const auto& [id, entry] : running) r.push_back(entry);
      for (const auto& [id, entry] : waiting) w.push_back(entry);
      const StepPlan plan = PlanStep(r, w, free, limits);
      ASSERT_FALSE(plan.empty()) << "seed " << seed;
      ASSERT_LE(plan.num_rows, limits.max_batch_tokens);
      for (const RequestId id : plan.preempted) {
        free += running.at(id).num_blocks;
        running.at(id).num_blocks = running.at(id).num_computed = 0;
        waiting.insert(running.extract(id));
      }
      for (const RequestId id : plan.admitted) running.insert(waiting.extract(id));
      ASSERT_LE(static_cast<int64_t>(running.size()), limits.max_sequences);
      int64_t num_rows = 0;
      for (const PlannedRows& rows : plan.rows) {
        num_rows += rows.num_rows;
        SchedulerEntry& entry = running.at(rows.id);
        ASSERT_EQ(entry.num_computed, rows.first_position);
        ASSERT_LE(rows.num_rows, limits.prefill_chunk);
        entry.num_computed += rows.num_rows;
        const int64_t blocks = BlockPool::BlocksForTokens(entry.num_computed);
        free -= blocks - entry.num_blocks;
        ASSERT_GE(free, 0) << "seed " << seed;
        entry.num_blocks = blocks;
        ASSERT_EQ(rows.reaches_end, entry.num_computed == entry.num_tokens);
        if (!rows.reaches_end) continue;
        if (entry.num_tokens == target[rows.id]) {
          free += entry.num_blocks;
          running.erase(rows.id);
        } else {
          ++entry.num_tokens;
        }
      }
      ASSERT_EQ(num_rows, plan.num_rows) << "seed " << seed;
    }
    EXPECT_EQ(free, total_blocks);
  }
}

}  // namespace
}  // namespace pith
