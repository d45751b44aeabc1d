// Runs the rows of a StepPlan through the model: builds the ForwardBatch, owns the logits buffer. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/sequence.h"
#include "engine/step_plan.h"
#include "kv_cache/kv_storage.h"
#include "model/decoder_model.h"

namespace pith {

// Logits after the token at `position` of one sequence.
struct ExecutedRow {
  int64_t position = 0;
  absl::Span<const float> logits;  // [vocab_size]; valid until the next Run
};

class ModelExecutor {
 public:
  ModelExecutor(DecoderModel& model, KvStorage storage) : model_(&model), storage_(std::move(storage)) {}

  // `sequences` are those of `plan.rows`, in its order, with blocks for their rows. Wanted logits: the last row when it reaches the end,
  // and every prompt row whose successor's logprobs are asked for and not yet reported. Per planned sequence, in ascending positions.
  absl::StatusOr<std::vector<std::vector<ExecutedRow>>> Run(const StepPlan& plan, absl::Span<Sequence* const> sequences);

 private:
  DecoderModel* model_;
  KvStorage storage_;
  std::vector<float> logits_;
};

}  // namespace pith
