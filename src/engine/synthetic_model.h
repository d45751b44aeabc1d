// For tests of what stands above a model: a DecoderModel without weights whose logits are exactly predictable, and which really uses the
// paged cache. Forward writes each token id into its KV slot and hashes every id it reads back through the block table, so a lost, shared
// or stale block changes the tokens. The next token is NextToken(all tokens so far).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "model/decoder_model.h"

namespace pith {

class SyntheticModel : public DecoderModel {
 public:
  // vocab_size <= 256: an id must survive bf16.
  explicit SyntheticModel(int64_t vocab_size = 64, int64_t max_position_embeddings = 512);

  const DecoderConfig& config() const override { return config_; }
  KvCacheSpec MakeKvSpec(int64_t num_blocks) const override;
  const std::vector<TensorDataPath>& data_path() const override { return data_path_; }
  std::string DataPathName() const override { return "synthetic"; }
  int64_t resident_weight_bytes() const override { return 0; }
  absl::Status Forward(const ForwardBatch& batch, KvStorage& kv, absl::Span<float> logits) override;
  void SetObserver(LayerObserver*) override {}
  void SetProfiler(Profiler*) override {}

  // The most likely token after `tokens`.
  int32_t NextToken(absl::Span<const int32_t> tokens) const;

  // Every later Forward fails with this status (OK: works again).
  void FailWith(absl::Status status) { failure_ = std::move(status); }
  int64_t forwards() const { return forwards_; }
  int64_t largest_pass() const { return largest_pass_; }  // rows

 private:
  void WriteLogits(absl::Span<const int32_t> tokens, absl::Span<float> logits) const;

  DecoderConfig config_;
  std::vector<TensorDataPath> data_path_;
  absl::Status failure_;
  int64_t forwards_ = 0, largest_pass_ = 0;
};

}  // namespace pith
