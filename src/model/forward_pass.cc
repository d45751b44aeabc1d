#include "model/forward_pass.h"

#include <algorithm>

#include "base/status.h"
#include "kernels/attention.h"

namespace pith {
namespace {

absl::Status ValidateSequence(const SequenceSlice& slice, int64_t index, int64_t row_begin, const DecoderConfig& config,
                              const KvCacheSpec& kv) {
  const auto error = [&](const auto&... parts) { return UsageError("sequence ", index, " of the batch: ", parts...); };
  if (slice.row_begin != row_begin) return error("expected row_begin ", row_begin, ", found ", slice.row_begin);
  if (slice.num_rows < 1) return error("expected at least 1 row, found ", slice.num_rows);
  if (slice.first_position < 0) return error("expected a position of at least 0, found ", slice.first_position);
  if (slice.num_rows > config.max_position_embeddings || slice.first_position > config.max_position_embeddings - slice.num_rows) {
    return error("expected positions below ", config.max_position_embeddings, " (max_position_embeddings), found ", slice.first_position,
                 " + ", slice.num_rows, " rows");
  }
  const int64_t tokens = slice.first_position + slice.num_rows;
  if (slice.blocks == nullptr) return error("expected a block table, found none");
  if (slice.blocks->capacity() < tokens) return error("expected blocks for ", tokens, " tokens, found ", slice.blocks->capacity());
  for (int64_t i = 0; i < BlockPool::BlocksForTokens(tokens); ++i) {
    const int32_t block = slice.blocks->blocks[i];
    if (block < 0 || block >= kv.num_blocks) return error("expected blocks in [0, ", kv.num_blocks, "), found ", block);
  }
  return absl::OkStatus();
}

}  // namespace

Workspace::Workspace(const DecoderConfig& config, int num_threads)
    : config_(config), scratch_floats_(AttentionScratchFloats(config.num_heads, config.num_kv_heads, config.head_dim)) {
  scratch_floats_ = (scratch_floats_ + 15) / 16 * 16;  // whole cache lines: threads do not share one
  attention_scratch_ = AlignedBuffer(static_cast<size_t>(scratch_floats_ * num_threads) * sizeof(float));
}

float* Workspace::attention_scratch(int thread) { return Floats(attention_scratch_) + thread * scratch_floats_; }

int64_t Workspace::bytes() const {
  size_t bytes = positions_.capacity() * sizeof(int32_t);
  for (const AlignedBuffer* buffer : {&hidden_, &qkv_, &attention_, &gate_up_, &branch_, &attention_scratch_, &attention_states_}) {
    bytes += buffer->size();
  }
  return static_cast<int64_t>(bytes) + normed_.bytes() + attended_.bytes() + mlp_activation_.bytes();
}

void Workspace::Reserve(int64_t rows) {
  if (rows <= rows_) return;
  rows_ = 0;  // should an allocation fail
  const auto grow = [](AlignedBuffer& buffer, int64_t elements, size_t element_bytes) {
    buffer.Reserve(static_cast<size_t>(elements) * element_bytes);
  };
  const int64_t heads = config_.num_heads + 2 * config_.num_kv_heads;
  const int64_t mlp_rows = std::min(rows, kMaxMlpRows);
  grow(hidden_, rows * config_.hidden_size, sizeof(float));
  grow(qkv_, rows * heads * config_.head_dim, sizeof(float));
  grow(attention_, rows * config_.num_heads * config_.head_dim, sizeof(uint16_t));
  grow(gate_up_, mlp_rows * 2 * config_.intermediate_size, sizeof(float));
  if (config_.post_norms) grow(branch_, rows * config_.hidden_size, sizeof(float));
  positions_.reserve(rows);
  rows_ = rows;
}

void Workspace::ReserveAttentionStates(int64_t floats) { attention_states_.Reserve(static_cast<size_t>(floats) * sizeof(float)); }

absl::Status ValidateBatch(const ForwardBatch& batch, const DecoderConfig& config, const KvCacheSpec& kv, int64_t logits_size) {
  if (kv.num_layers != config.num_layers || kv.num_kv_heads != config.num_kv_heads || kv.head_dim != config.head_dim) {
    return UsageError("KV cache: expected ", config.num_layers, " layers of ", config.num_kv_heads, " heads of ", config.head_dim,
                      ", found ", kv.num_layers, " of ", kv.num_kv_heads, " of ", kv.head_dim);
  }
  for (int64_t row = 0; row < batch.num_rows(); ++row) {
    const int32_t token = batch.token_ids[row];
    if (token < 0 || token >= config.vocab_size) {
      return UsageError("row ", row, " of the batch: expected a token id in [0, ", config.vocab_size, "), found ", token);
    }
  }
  int64_t rows = 0;
  for (size_t s = 0; s < batch.sequences.size(); ++s) {
    RETURN_IF_ERROR(ValidateSequence(batch.sequences[s], static_cast<int64_t>(s), rows, config, kv));
    rows += batch.sequences[s].num_rows;
  }
  if (rows == 0 || rows != batch.num_rows()) {
    return UsageError("batch: expected at least one row, and as many token ids as rows of sequences, found ", batch.num_rows(), " and ",
                      rows);
  }
  int64_t previous = -1;
  for (const int32_t row : batch.logits_rows) {
    if (row <= previous || row >= rows) {
      return UsageError("logits_rows: expected ascending rows in [0, ", rows, "), found ", row, " after ", previous);
    }
    previous = row;
  }
  const int64_t expected = static_cast<int64_t>(batch.logits_rows.size()) * config.vocab_size;
  if (logits_size != expected) return UsageError("logits: expected room for ", expected, " floats, found ", logits_size);
  return absl::OkStatus();
}

}  // namespace pith
