#include "engine/synthetic_model.h"

#include <algorithm>

#include "base/check.h"
#include "base/float_types.h"
#include "base/random.h"
#include "base/status.h"

namespace pith {
namespace {

uint64_t HashTokens(absl::Span<const int32_t> tokens) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const int32_t token : tokens) hash = (hash ^ static_cast<uint64_t>(token + 1)) * 0x100000001B3;
  return hash;
}

}  // namespace

SyntheticModel::SyntheticModel(int64_t vocab_size, int64_t max_position_embeddings) {
  CHECK(vocab_size >= 2 && vocab_size <= 256);
  config_.model_type = "synthetic";
  config_.vocab_size = vocab_size;
  config_.num_layers = 1;
  config_.num_kv_heads = 1;
  config_.num_heads = 1;
  config_.head_dim = 1;
  config_.max_position_embeddings = max_position_embeddings;
}

KvCacheSpec SyntheticModel::MakeKvSpec(int64_t num_blocks) const {
  return {.num_layers = 1, .num_kv_heads = 1, .head_dim = 1, .num_blocks = num_blocks};
}

int32_t SyntheticModel::NextToken(absl::Span<const int32_t> tokens) const {
  return static_cast<int32_t>((HashTokens(tokens) >> 20) % static_cast<uint64_t>(config_.vocab_size));
}

void SyntheticModel::WriteLogits(absl::Span<const int32_t> tokens, absl::Span<float> logits) const {
  const uint64_t hash = HashTokens(tokens);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(UniformOpen(hash, 1, i));
  logits[static_cast<size_t>(NextToken(tokens))] = 4.0f;
}

absl::Status SyntheticModel::Forward(const ForwardBatch& batch, KvStorage& kv, absl::Span<float> logits) {
  ++forwards_;
  largest_pass_ = std::max(largest_pass_, batch.num_rows());
  if (!failure_.ok()) return failure_;
  const int64_t stride = kv.spec().block_stride();  // at least two bytes per token in every format
  const auto slot = [&](const BlockTable& table, int64_t position) {
    uint8_t* block = kv.key(0) + table.blocks.at(static_cast<size_t>(position / kBlockSizeTokens)) * stride;
    return reinterpret_cast<uint16_t*>(block) + position % kBlockSizeTokens;
  };
  for (const SequenceSlice& sequence : batch.sequences) {
    for (int64_t i = 0; i < sequence.num_rows; ++i) {
      const int32_t token = batch.token_ids[static_cast<size_t>(sequence.row_begin + i)];
      *slot(*sequence.blocks, sequence.first_position + i) = ToBfloat16(static_cast<float>(token)).bits;
    }
  }
  const auto vocab = static_cast<size_t>(config_.vocab_size);
  for (size_t wanted = 0; wanted < batch.logits_rows.size(); ++wanted) {
    const int64_t row = batch.logits_rows[wanted];
    for (const SequenceSlice& sequence : batch.sequences) {
      if (row < sequence.row_begin || row >= sequence.row_begin + sequence.num_rows) continue;
      std::vector<int32_t> tokens;
      for (int64_t position = 0; position <= sequence.first_position + row - sequence.row_begin; ++position) {
        tokens.push_back(static_cast<int32_t>(ToFloat(bfloat16{*slot(*sequence.blocks, position)})));
      }
      WriteLogits(tokens, logits.subspan(wanted * vocab, vocab));
    }
  }
  return absl::OkStatus();
}

}  // namespace pith
