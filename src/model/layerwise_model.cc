#include "model/layerwise_model.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/status.h"
#include "model/architectures/architecture.h"
#include "model/weight_binding.h"
#include "model/weight_check.h"

namespace pith {

LayerwiseModel::LayerwiseModel(DecoderConfig config, WeightMap map, const LayerwiseOptions& options)
    : config_(std::move(config)),
      map_(std::move(map)),
      options_(options),
      context_(MakeComputeContext(options.pool, options.isa, options.weight_only_activation)),
      attention_(SelectAttention(KvDtype::kBf16, config_.head_dim, options.isa)),
      rotary_(std::make_unique<RotaryEmbedding>(config_.rope, config_.head_dim, config_.max_position_embeddings)),
      workspace_(config_, options.pool->num_threads()) {
  if (config_.rope_local != config_.rope) {
    rotary_local_ = std::make_unique<RotaryEmbedding>(config_.rope_local, config_.head_dim, config_.max_position_embeddings);
  }
}

absl::StatusOr<std::unique_ptr<LayerwiseModel>> LayerwiseModel::Create(const ArtifactReader& reader, const LayerwiseOptions& options) {
  CHECK(options.pool != nullptr);
  absl::StatusOr<DecoderConfig> config = ParseDecoderConfig(reader.config());
  if (!config.ok()) return Annotate(config.status(), reader.path());
  ASSIGN_OR_RETURN(const Architecture* architecture, FindArchitecture(config->model_type));
  ASSIGN_OR_RETURN(WeightMap map, MakeWeightMap(reader, architecture->norms));
  RETURN_IF_ERROR(Annotate(CheckWeights(reader, *config, map), reader.path()));
  std::unique_ptr<LayerwiseModel> model(new LayerwiseModel(*std::move(config), std::move(map), options));
  ASSIGN_OR_RETURN(model->final_norm_, ReadFinalNorm(reader, model->config_, model->map_, model->context_));
  if (options.with_head) {
    ASSIGN_OR_RETURN(BoundDecoder ends, ReadEmbeddingAndHead(reader, model->config_, model->map_, model->context_));
    model->embedding_ = std::move(ends.embedding);
    model->head_ = std::move(ends.head);
  } else {
    ASSIGN_OR_RETURN(model->embedding_, ReadEmbedding(reader, model->config_, model->map_, model->context_));
  }
  const int64_t num_blocks = (options.max_tokens + kBlockSizeTokens - 1) / kBlockSizeTokens;
  ASSIGN_OR_RETURN(
      model->kv_,
      KvStorage::Create(
          {.num_layers = 1, .num_kv_heads = model->config_.num_kv_heads, .head_dim = model->config_.head_dim, .num_blocks = num_blocks}));
  model->blocks_.blocks.resize(static_cast<size_t>(num_blocks));
  std::iota(model->blocks_.blocks.begin(), model->blocks_.blocks.end(), 0);
  return model;
}

absl::Status LayerwiseModel::Embed(absl::Span<const int32_t> tokens, absl::Span<float> hidden) const {
  CHECK_EQ(static_cast<int64_t>(hidden.size()), static_cast<int64_t>(tokens.size()) * config_.hidden_size);
  for (const int32_t token : tokens) {
    if (token < 0 || token >= config_.vocab_size) {
      return UsageError("token id: expected one in [0, ", config_.vocab_size, "), found ", token);
    }
  }
  embedding_.Run(context_, tokens, config_.embedding_scale, hidden.data(), config_.hidden_size);
  return absl::OkStatus();
}

absl::StatusOr<DecoderLayer> LayerwiseModel::LoadLayer(const ArtifactReader& reader, int64_t index) const {
  ComputeContext context = context_;
  context.arena = std::make_shared<HugePageArena>();
  ASSIGN_OR_RETURN(DecoderLayer layer, ReadDecoderLayer(reader, config_, map_, context, index));
  layer.index = 0;  // of the cache, which holds one layer
  layer.rotary = layer.window > 0 && rotary_local_ != nullptr ? rotary_local_.get() : rotary_.get();
  return layer;
}

absl::Status LayerwiseModel::RunLayer(const DecoderLayer& layer, int64_t num_tokens, absl::Span<float> hidden, LayerObserver* observer) {
  if (num_tokens < 1 || num_tokens > options_.max_tokens) {
    return UsageError("sequence: expected 1 to ", options_.max_tokens, " tokens, found ", num_tokens);
  }
  CHECK_EQ(static_cast<int64_t>(hidden.size()), num_tokens * config_.hidden_size);
  ForwardBatch batch;
  batch.token_ids.assign(static_cast<size_t>(num_tokens), 0);  // embedded already
  batch.sequences.push_back({.row_begin = 0, .num_rows = num_tokens, .first_position = 0, .blocks = &blocks_});
  workspace_.Reserve(num_tokens);
  std::vector<int32_t>& positions = workspace_.positions();
  positions.resize(static_cast<size_t>(num_tokens));
  std::iota(positions.begin(), positions.end(), 0);
  rotary_->Reserve(num_tokens);
  if (rotary_local_ != nullptr) rotary_local_->Reserve(num_tokens);
  std::vector<AttentionPlan> plans = {PlanAttention(batch, config_, layer.window, context_.pool->num_threads())};
  workspace_.ReserveAttentionStates(plans[0].state_floats);
  std::copy(hidden.begin(), hidden.end(), workspace_.hidden());
  ForwardPass pass{context_, config_, batch, *kv_, workspace_, attention_, plans, observer, nullptr};
  RunDecoderLayer(layer, pass);
  std::copy_n(workspace_.hidden(), hidden.size(), hidden.begin());
  return absl::OkStatus();
}

void LayerwiseModel::ObserveHead(absl::Span<const float> hidden, LayerObserver& observer) {
  const int64_t dim = config_.hidden_size, rows = static_cast<int64_t>(hidden.size()) / dim;
  CHECK_EQ(rows * dim, static_cast<int64_t>(hidden.size()));
  workspace_.normed().Prepare({}, rows, dim, /*keep_bf16=*/true);
  final_norm_.Run(context_, hidden.data(), dim, rows, workspace_.normed());
  observer.OnLinearInput(map_.head, workspace_.normed().bf16(), rows, dim);
}

void LayerwiseModel::Logits(absl::Span<const float> hidden, absl::Span<float> logits) {
  CHECK(head_.has_value());
  const int64_t rows = static_cast<int64_t>(hidden.size()) / config_.hidden_size;
  CHECK_EQ(static_cast<int64_t>(logits.size()), rows * config_.vocab_size);
  workspace_.Reserve(rows);
  std::vector<int32_t> all(static_cast<size_t>(rows));
  std::iota(all.begin(), all.end(), 0);
  workspace_.normed().Prepare(head_->projection().formats(), rows, config_.hidden_size, /*keep_bf16=*/false);
  head_->Normalize(context_, hidden.data(), all, workspace_.normed());
  head_->Run(context_, workspace_.normed(), rows, logits.data());
}

}  // namespace pith
