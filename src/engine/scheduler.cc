#include "engine/scheduler.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "kv_cache/block_pool.h"

namespace pith {
namespace {

std::vector<SchedulerEntry> InPolicyOrder(absl::Span<const SchedulerEntry> entries) {
  std::vector<SchedulerEntry> sorted(entries.begin(), entries.end());
  std::sort(sorted.begin(), sorted.end(), [](const SchedulerEntry& a, const SchedulerEntry& b) {
    return std::tie(a.priority, a.arrival, a.id) < std::tie(b.priority, b.arrival, b.id);
  });
  return sorted;
}

class Planner {
 public:
  Planner(absl::Span<const SchedulerEntry> running, int64_t free_blocks, const SchedulerLimits& limits)
      : limits_(limits), running_(InPolicyOrder(running)), state_(running_.size(), State::kPending), free_blocks_(free_blocks) {}

  StepPlan Plan(absl::Span<const SchedulerEntry> waiting) {
    for (const bool decode : {true, false}) {
      for (size_t i = 0; i < running_.size(); ++i) {
        const bool is_decode = running_[i].num_tokens - running_[i].num_computed == 1;
        if (state_[i] == State::kPending && is_decode == decode) ScheduleRunning(i);
      }
    }
    if (plan_.preempted.empty()) Admit(InPolicyOrder(waiting));
    return std::move(plan_);
  }

 private:
  enum class State { kPending, kScheduled, kPreempted };

  int64_t RowsFor(const SchedulerEntry& entry) const {
    int64_t rows = std::min({entry.num_tokens - entry.num_computed, limits_.prefill_chunk, limits_.max_batch_tokens - plan_.num_rows});
    return entry.max_rows > 0 ? std::min(rows, entry.max_rows) : rows;
  }

  static int64_t BlocksNeeded(const SchedulerEntry& entry, int64_t rows) {
    return std::max<int64_t>(0, BlockPool::BlocksForTokens(entry.num_computed + rows) - entry.num_blocks);
  }

  // Takes blocks back from the last running sequence in policy order that nothing was planned for and that comes after `index`.
  bool PreemptAfter(size_t index) {
    for (size_t victim = running_.size(); victim-- > index + 1;) {
      if (state_[victim] != State::kPending) continue;
      state_[victim] = State::kPreempted;
      free_blocks_ += running_[victim].num_blocks;
      plan_.preempted.push_back(running_[victim].id);
      return true;
    }
    return false;
  }

  // Undoes the rows planned for the last scheduled sequence after `index` in policy order and preempts it: a decode row of a later
  // sequence must not starve an earlier one's prefill.
  bool UnscheduleAfter(size_t index) {
    for (size_t victim = running_.size(); victim-- > index + 1;) {
      if (state_[victim] != State::kScheduled) continue;
      const auto planned = std::find_if(plan_.rows.begin(), plan_.rows.end(),
                                        [&](const PlannedRows& r) { return r.id == running_[victim].id; });
      free_blocks_ += running_[victim].num_blocks + BlocksNeeded(running_[victim], planned->num_rows);
      plan_.num_rows -= planned->num_rows;
      plan_.rows.erase(planned);
      state_[victim] = State::kPreempted;
      plan_.preempted.push_back(running_[victim].id);
      return true;
    }
    return false;
  }

  void ScheduleRunning(size_t index) {
    const SchedulerEntry& entry = running_[index];
    if (RowsFor(entry) <= 0) return;
    while (BlocksNeeded(entry, RowsFor(entry)) > free_blocks_) {
      if (!PreemptAfter(index) && !UnscheduleAfter(index)) return;  // waits for blocks of sequences before it
    }
    state_[index] = State::kScheduled;
    AddRows(entry);
  }

  void AddRows(const SchedulerEntry& entry) {
    const int64_t rows = RowsFor(entry);
    free_blocks_ -= BlocksNeeded(entry, rows);
    DCHECK(free_blocks_ >= 0);
    plan_.rows.push_back({.id = entry.id,
                          .first_position = entry.num_computed,
                          .num_rows = rows,
                          .reaches_end = entry.num_computed + rows == entry.num_tokens});
    plan_.num_rows += rows;
  }

  void Admit(const std::vector<SchedulerEntry>& waiting) {
    auto num_running = static_cast<int64_t>(running_.size());
    for (const SchedulerEntry& entry : waiting) {
      if (num_running >= limits_.max_sequences || RowsFor(entry) <= 0) return;
      // Room for all its tokens and, beside others, the first it will generate; what the earlier prefills still need is promised to them.
      const int64_t generated = plan_.rows.empty() ? 0 : 1;
      if (BlocksNeeded(entry, entry.num_tokens - entry.num_computed + generated) > free_blocks_ - PromisedBlocks()) return;
      plan_.admitted.push_back(entry.id);
      admitted_.push_back(entry);
      AddRows(entry);
      ++num_running;
    }
  }

  // Blocks that sequences already running or admitted still need to finish their known tokens.
  int64_t PromisedBlocks() const {
    int64_t blocks = 0;
    const auto add = [&](const SchedulerEntry& entry) {
      int64_t planned = 0;
      for (const PlannedRows& rows : plan_.rows) {
        if (rows.id == entry.id) planned = rows.num_rows;
      }
      const int64_t held = std::max(entry.num_blocks, BlockPool::BlocksForTokens(entry.num_computed + planned));
      blocks += std::max<int64_t>(0, BlockPool::BlocksForTokens(entry.num_tokens) - held);
    };
    for (size_t i = 0; i < running_.size(); ++i) {
      if (state_[i] != State::kPreempted) add(running_[i]);
    }
    for (const SchedulerEntry& entry : admitted_) add(entry);
    return blocks;
  }

  const SchedulerLimits limits_;
  const std::vector<SchedulerEntry> running_;
  std::vector<State> state_;
  std::vector<SchedulerEntry> admitted_;
  int64_t free_blocks_;
  StepPlan plan_;
};

}  // namespace

StepPlan PlanStep(absl::Span<const SchedulerEntry> running, absl::Span<const SchedulerEntry> waiting, int64_t free_blocks,
                  const SchedulerLimits& limits) {
  return Planner(running, free_blocks, limits).Plan(waiting);
}

}  // namespace pith
