#include "cli/workload.h"

#include <algorithm>

#include "base/interrupt.h"
#include "base/status.h"
#include "cli/command.h"
#include "cli/process_memory.h"

namespace pith {

int64_t StreamedWeightBytes(const DecoderModel& model) { return model.resident_weight_bytes() - model.data_path().front().resident_bytes; }

absl::Status CheckKvCacheFits(const DecoderModel& model, int64_t sequences, int64_t tokens_each, std::optional<KvDtype> kv_cache_dtype,
                              int64_t available_bytes) {
  const int64_t tokens = sequences * BlockPool::BlocksForTokens(tokens_each) * kBlockSizeTokens;
  const int64_t needed = tokens * model.KvSpecAs(kv_cache_dtype, 1).bytes_per_token();
  if (available_bytes <= 0 || needed <= available_bytes) return absl::OkStatus();
  return OutOfMemoryError("KV cache of ", Plural(sequences, "sequence"), " of ", tokens_each, " tokens: expected ", HumanBytes(needed),
                          " of free memory, found ", HumanBytes(available_bytes));
}

absl::StatusOr<Workload> Workload::Create(DecoderModel& model, int64_t sequences, int64_t tokens_each,
                                          std::optional<KvDtype> kv_cache_dtype) {
  RETURN_IF_ERROR(CheckKvCacheFits(model, sequences, tokens_each, kv_cache_dtype, AvailableMemoryBytes()));
  Workload workload(model, sequences);
  const int64_t blocks = BlockPool::BlocksForTokens(tokens_each);
  workload.pool_ = std::make_unique<BlockPool>(sequences * blocks);
  ASSIGN_OR_RETURN(KvStorage storage, KvStorage::Create(model.KvSpecAs(kv_cache_dtype, sequences * blocks)));
  workload.storage_ = std::make_unique<KvStorage>(std::move(storage));
  for (BlockTable& table : workload.tables_) RETURN_IF_ERROR(workload.pool_->Grow(table, tokens_each));
  return workload;
}

void Workload::Truncate(int64_t tokens) {
  for (BlockTable& table : tables_) table.num_tokens = std::min(table.num_tokens, tokens);
}

absl::Status Workload::Advance(int64_t rows, LogitsRows logits) {
  for (int64_t done = 0; done < rows; done += kMaxPassRows) RETURN_IF_ERROR(Pass(std::min(kMaxPassRows, rows - done), logits));
  return absl::OkStatus();
}

absl::Status Workload::Pass(int64_t rows, LogitsRows logits) {
  const int64_t vocab = model_->config().vocab_size;
  ForwardBatch batch;
  for (BlockTable& table : tables_) {
    batch.sequences.push_back({.row_begin = batch.num_rows(), .num_rows = rows, .first_position = table.num_tokens, .blocks = &table});
    for (int64_t i = 0; i < rows; ++i) {
      batch.token_ids.push_back(static_cast<int32_t>(random_.Below(static_cast<uint64_t>(vocab))));
      if (logits == LogitsRows::kAll || i + 1 == rows) batch.logits_rows.push_back(static_cast<int32_t>(batch.num_rows() - 1));
    }
  }
  logits_.resize(batch.logits_rows.size() * static_cast<size_t>(vocab));
  RETURN_IF_ERROR(model_->Forward(batch, *storage_, absl::MakeSpan(logits_)));
  for (BlockTable& table : tables_) table.num_tokens += rows;
  return CheckInterrupted();
}

}  // namespace pith
