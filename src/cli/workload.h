// Synthetic work for measuring: sequences of random tokens side by side in one KV storage, advanced pass by pass.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/random.h"
#include "kv_cache/block_pool.h"
#include "kv_cache/kv_storage.h"
#include "model/decoder_model.h"

namespace pith {

// Which rows of a pass get logits: the last of each sequence (prefill, decode), or all (verification of drafts, scoring).
enum class LogitsRows { kLast, kAll };

// The weights one pass streams: all that is resident but the embedding, of which a pass reads a few rows.
int64_t StreamedWeightBytes(const DecoderModel& model);

// Whether the KV cache of such a workload fits into `available_bytes`; 0: that is not known. The system would hand out addresses for any
// number of bytes, and end the process when too many are used. Errors: kResourceExhausted with both figures.
absl::Status CheckKvCacheFits(const DecoderModel& model, int64_t sequences, int64_t tokens_each, std::optional<KvDtype> kv_cache_dtype,
                              int64_t available_bytes);

// Borrows the model, which must outlive it. The tokens come from a fixed seed: the same for every model with the same vocabulary.
class Workload {
 public:
  static constexpr int64_t kMaxPassRows = 512;  // of one sequence

  // Room for `tokens_each` tokens in each of `sequences` sequences; without a format, in the model's own. Errors: those of
  // CheckKvCacheFits for what is free now.
  static absl::StatusOr<Workload> Create(DecoderModel& model, int64_t sequences, int64_t tokens_each,
                                         std::optional<KvDtype> kv_cache_dtype = std::nullopt);

  // Forgets tokens beyond `tokens` of every sequence.
  void Truncate(int64_t tokens = 0);

  // `rows` more tokens for every sequence, in passes of at most kMaxPassRows rows each. Errors: those of Forward; kCancelled.
  absl::Status Advance(int64_t rows, LogitsRows logits = LogitsRows::kLast);

 private:
  Workload(DecoderModel& model, int64_t sequences) : model_(&model), tables_(static_cast<size_t>(sequences)) {}
  absl::Status Pass(int64_t rows, LogitsRows logits);

  DecoderModel* model_;
  std::unique_ptr<BlockPool> pool_;
  std::unique_ptr<KvStorage> storage_;
  std::vector<BlockTable> tables_;
  std::vector<float> logits_;
  RandomStream random_{1};
};

}  // namespace pith
