// A decoder run one layer at a time, with the weights of one layer in memory: what calibration needs. The caller keeps the hidden states of
// all its sequences and takes them from layer to layer.
//
//   ASSIGN_OR_RETURN(auto model, LayerwiseModel::Create(*reader, {.pool = &pool, .isa = isa}));
//   RETURN_IF_ERROR(model->Embed(tokens, hidden));
//   for (int64_t i = 0; i < model->config().num_layers; ++i) {
//     ASSIGN_OR_RETURN(const DecoderLayer layer, model->LoadLayer(*reader, i));
//     RETURN_IF_ERROR(model->RunLayer(layer, num_tokens, hidden, &observer));
//   }
//
// The bits are those of DecoderModel with the same weights, instruction set and activations. One call at a time.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "artifact/artifact_reader.h"
#include "base/cpu_features.h"
#include "base/thread_pool.h"
#include "kv_cache/block_pool.h"
#include "kv_cache/kv_storage.h"
#include "model/decoder_config.h"
#include "model/decoder_layer.h"
#include "model/forward_pass.h"
#include "model/layer_observer.h"
#include "model/weight_map.h"
#include "nn/compute_context.h"
#include "nn/embedding.h"
#include "nn/lm_head.h"
#include "nn/rms_norm.h"

namespace pith {

struct LayerwiseOptions {
  ThreadPool* pool = nullptr;                   // borrowed; must outlive the model
  Isa isa = Isa::kScalar;                       // usually SelectIsa()
  WeightOnlyActivation weight_only_activation;  // what quantized layers are multiplied with
  int64_t max_tokens = 2048;                    // of a sequence
  bool with_head = false;                       // Logits can be asked for
};

class LayerwiseModel {
 public:
  // Reads the embedding and the final norm, and the head where it is wanted. Errors: those of DecoderModel::Load; kResourceExhausted.
  static absl::StatusOr<std::unique_ptr<LayerwiseModel>> Create(const ArtifactReader& reader, const LayerwiseOptions& options);

  const DecoderConfig& config() const { return config_; }
  const WeightMap& weight_map() const { return map_; }

  // hidden [tokens, hidden_size]. Errors: kInvalidArgument for an id out of range.
  absl::Status Embed(absl::Span<const int32_t> tokens, absl::Span<float> hidden) const;

  // Layer `index` with the weights that `reader` has: the model's own, or others of the same names and shapes. Its memory goes with it.
  absl::StatusOr<DecoderLayer> LoadLayer(const ArtifactReader& reader, int64_t index) const;

  // Runs one sequence of num_tokens from position 0 through the layer: hidden [num_tokens, hidden_size] in and out. `observer` (null: none)
  // sees what flows into its linear modules. Errors: kInvalidArgument for a length that is not in [1, max_tokens].
  absl::Status RunLayer(const DecoderLayer& layer, int64_t num_tokens, absl::Span<float> hidden, LayerObserver* observer);

  // Shows `observer` what reaches the head from hidden states [rows, hidden_size] behind the last layer, as the input of weight_map().head,
  // tied or not; rows <= max_tokens.
  void ObserveHead(absl::Span<const float> hidden, LayerObserver& observer);

  // logits [rows, vocab_size] of hidden states [rows, hidden_size] behind the last layer; rows <= max_tokens. Needs options.with_head.
  void Logits(absl::Span<const float> hidden, absl::Span<float> logits);

 private:
  LayerwiseModel(DecoderConfig config, WeightMap map, const LayerwiseOptions& options);

  const DecoderConfig config_;
  const WeightMap map_;
  const LayerwiseOptions options_;
  const ComputeContext context_;  // of passes and of the embedding
  AttentionSelection attention_;
  std::unique_ptr<RotaryEmbedding> rotary_, rotary_local_;  // rotary_local_ null: the same as rotary_
  Embedding embedding_;
  RmsNorm final_norm_;
  std::optional<LmHead> head_;
  Workspace workspace_;
  std::optional<KvStorage> kv_;  // of one layer
  BlockTable blocks_;            // all of kv_
};

}  // namespace pith
