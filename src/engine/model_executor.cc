#include "engine/model_executor.h"

#include "base/check.h"
#include "base/status.h"

namespace pith {
namespace {

bool WantsLogits(const Sequence& sequence, const PlannedRows& rows, int64_t position) {
  if (rows.reaches_end && position == rows.first_position + rows.num_rows - 1) return true;
  return sequence.request.prompt_logprobs && position >= sequence.num_prompt_logprobs && position + 1 < sequence.num_prompt();
}

}  // namespace

absl::StatusOr<std::vector<std::vector<ExecutedRow>>> ModelExecutor::Run(const StepPlan& plan, absl::Span<Sequence* const> sequences) {
  CHECK_EQ(plan.rows.size(), sequences.size());
  ForwardBatch batch;
  std::vector<std::vector<ExecutedRow>> results(sequences.size());
  for (size_t i = 0; i < sequences.size(); ++i) {
    const Sequence& sequence = *sequences[i];
    const PlannedRows& rows = plan.rows[i];
    const int64_t row_begin = batch.num_rows(), end = rows.first_position + rows.num_rows;
    batch.sequences.push_back(
        {.row_begin = row_begin, .num_rows = rows.num_rows, .first_position = rows.first_position, .blocks = &sequence.blocks});
    for (int64_t position = rows.first_position; position < end; ++position) {
      batch.token_ids.push_back(sequence.tokens[static_cast<size_t>(position)]);
      if (!WantsLogits(sequence, rows, position)) continue;
      batch.logits_rows.push_back(static_cast<int32_t>(row_begin + position - rows.first_position));
      results[i].push_back({.position = position});
    }
  }
  const auto vocab = static_cast<size_t>(model_->config().vocab_size);
  logits_.resize(batch.logits_rows.size() * vocab);
  RETURN_IF_ERROR(model_->Forward(batch, storage_, absl::MakeSpan(logits_)));
  size_t next = 0;
  for (std::vector<ExecutedRow>& rows : results) {
    for (ExecutedRow& row : rows) row.logits = absl::MakeConstSpan(logits_).subspan(vocab * next++, vocab);
  }
  return results;
}

}  // namespace pith
