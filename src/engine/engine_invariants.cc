#include "engine/engine_invariants.h"

#include "base/status.h"
#include "kv_cache/block_pool.h"

namespace pith {
namespace {

absl::Status CheckSequence(const SequenceSnapshot& sequence) {
  const auto held = static_cast<int64_t>(sequence.blocks.size());
  if (sequence.num_computed < 0 || sequence.num_computed >= sequence.num_tokens) {
    return BugError("request ", sequence.id, ": expected fewer computed than known tokens, found ", sequence.num_computed, " of ",
                    sequence.num_tokens);
  }
  if (sequence.num_tokens > sequence.max_model_len) {
    return BugError("request ", sequence.id, ": expected at most ", sequence.max_model_len, " tokens, found ", sequence.num_tokens);
  }
  if (!sequence.running && (held != 0 || sequence.num_computed != 0)) {
    return BugError("request ", sequence.id, ": expected a waiting sequence to hold nothing, found ", held, " blocks");
  }
  if (held != BlockPool::BlocksForTokens(sequence.num_computed)) {
    return BugError("request ", sequence.id, ": expected the blocks of ", sequence.num_computed, " tokens, found ", held, " blocks");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckInvariants(const EngineSnapshot& snapshot) {
  std::vector<RequestId> owner(static_cast<size_t>(snapshot.num_blocks), 0);
  std::vector<bool> owned(static_cast<size_t>(snapshot.num_blocks), false);
  int64_t used = 0, running = 0;
  for (const SequenceSnapshot& sequence : snapshot.sequences) {
    RETURN_IF_ERROR(CheckSequence(sequence));
    running += sequence.running ? 1 : 0;
    for (const int32_t block : sequence.blocks) {
      if (block < 0 || block >= snapshot.num_blocks) return BugError("request ", sequence.id, ": block ", block, " does not exist");
      if (owned[block]) return BugError("block ", block, ": owned by requests ", owner[block], " and ", sequence.id);
      owned[block] = true;
      owner[block] = sequence.id;
      ++used;
    }
  }
  if (used + snapshot.num_free_blocks != snapshot.num_blocks) {
    return BugError("KV blocks: expected used + free = ", snapshot.num_blocks, ", found ", used, " + ", snapshot.num_free_blocks);
  }
  if (running > snapshot.max_sequences) return BugError("expected at most ", snapshot.max_sequences, " running sequences, found ", running);
  return absl::OkStatus();
}

}  // namespace pith
