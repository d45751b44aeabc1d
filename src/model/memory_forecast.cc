#include "model/memory_forecast.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "model/architectures/architecture.h"
#include "model/attention_plan.h"
#include "model/forward_pass.h"
#include "model/stored_shape.h"
#include "model/weight_map.h"
#include "nn/linear_forecast.h"

namespace pith {
namespace {

constexpr int64_t kFloatBytes = 4;

struct LayerForecast {
  LinearForecast qkv, o, gate_up, down;
};

class Forecaster {
 public:
  static absl::StatusOr<Forecaster> Make(const ArtifactReader& reader, const ComputeContext& context);

  absl::StatusOr<WeightBytes> Weights();
  absl::StatusOr<int64_t> Buffers(const ForwardBatch& batch);

 private:
  Forecaster(const ArtifactReader& reader, const ComputeContext& context, DecoderConfig config)
      : reader_(reader), context_(context), config_(std::move(config)) {}

  // Adds the biases to bias_bytes_.
  absl::StatusOr<LinearForecast> Linear(int64_t layer, std::initializer_list<const char*> modules, bool has_bias);
  absl::StatusOr<LayerForecast> Layer(int64_t layer);
  absl::StatusOr<LinearForecast> Head();

  const ArtifactReader& reader_;
  const ComputeContext& context_;
  DecoderConfig config_;
  WeightMap map_;
  int64_t bias_bytes_ = 0;
};

absl::StatusOr<Forecaster> Forecaster::Make(const ArtifactReader& reader, const ComputeContext& context) {
  ASSIGN_OR_RETURN(DecoderConfig config, ParseDecoderConfig(reader.config()));
  ASSIGN_OR_RETURN(const Architecture* architecture, FindArchitecture(config.model_type));
  Forecaster forecaster(reader, context, std::move(config));
  ASSIGN_OR_RETURN(forecaster.map_, MakeWeightMap(reader, architecture->norms));
  return forecaster;
}

absl::StatusOr<LinearForecast> Forecaster::Linear(int64_t layer, std::initializer_list<const char*> modules, bool has_bias) {
  std::vector<WeightShape> parts;
  for (const char* module : modules) {
    ASSIGN_OR_RETURN(parts.emplace_back(), StoredShape(reader_, map_.Layer(layer, module)));
    if (has_bias) bias_bytes_ += parts.back().out * kFloatBytes;
  }
  return ForecastLinear(parts, context_);
}

absl::StatusOr<LayerForecast> Forecaster::Layer(int64_t layer) {
  LayerForecast forecast;
  ASSIGN_OR_RETURN(forecast.qkv, Linear(layer, {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}, config_.qkv_bias));
  ASSIGN_OR_RETURN(forecast.o, Linear(layer, {"self_attn.o_proj"}, config_.o_bias));
  ASSIGN_OR_RETURN(forecast.gate_up, Linear(layer, {"mlp.gate_proj", "mlp.up_proj"}, config_.mlp_bias));
  ASSIGN_OR_RETURN(forecast.down, Linear(layer, {"mlp.down_proj"}, config_.mlp_bias));
  return forecast;
}

absl::StatusOr<LinearForecast> Forecaster::Head() {
  // Tied: tokens are looked up in the head's matrix.
  ASSIGN_OR_RETURN(const WeightShape head, StoredShape(reader_, config_.tie_word_embeddings ? map_.Embedding() : map_.head));
  return ForecastLinear({&head, 1}, context_);
}

absl::StatusOr<WeightBytes> Forecaster::Weights() {
  WeightBytes bytes;
  const int64_t layer_norms = 2 + (config_.post_norms ? 2 : 0);
  bytes.norms = (config_.num_layers * layer_norms + 1) * config_.hidden_size * kFloatBytes;
  if (config_.qk_norm) bytes.norms += config_.num_layers * 2 * config_.head_dim * kFloatBytes;
  for (int64_t layer = 0; layer < config_.num_layers; ++layer) {
    ASSIGN_OR_RETURN(const LayerForecast forecast, Layer(layer));
    bytes.attention += forecast.qkv.bytes + forecast.o.bytes;
    bytes.mlp += forecast.gate_up.bytes + forecast.down.bytes;
  }
  if (!config_.tie_word_embeddings) {
    ASSIGN_OR_RETURN(const WeightShape table, StoredShape(reader_, map_.Embedding()));
    ASSIGN_OR_RETURN(bytes.embedding, ForecastEmbeddingBytes(table, context_));
  }
  ASSIGN_OR_RETURN(const LinearForecast head, Head());
  bytes.lm_head = head.bytes;
  bytes.norms += bias_bytes_;
  return bytes;
}

// The reservations of DecoderModel::Forward in its order, on a workspace that nobody computes in.
absl::StatusOr<int64_t> Forecaster::Buffers(const ForwardBatch& batch) {
  const int num_threads = context_.pool->num_threads();
  const int64_t rows = batch.num_rows(), mlp_rows = std::min(rows, kMaxMlpRows);
  Workspace workspace(config_, num_threads);
  workspace.Reserve(rows);
  for (const AttentionPlan& plan : PlanAttention(batch, config_, num_threads)) workspace.ReserveAttentionStates(plan.state_floats);
  for (int64_t layer = 0; layer < config_.num_layers; ++layer) {
    ASSIGN_OR_RETURN(const LayerForecast forecast, Layer(layer));
    workspace.normed().Prepare(forecast.qkv.formats, rows, config_.hidden_size);
    workspace.attended().Prepare(forecast.o.formats, rows, config_.num_heads * config_.head_dim);
    workspace.normed().Prepare(forecast.gate_up.formats, rows, config_.hidden_size);
    workspace.mlp_activation().Prepare(forecast.down.formats, mlp_rows, config_.intermediate_size);
  }
  if (!batch.logits_rows.empty()) {
    ASSIGN_OR_RETURN(const LinearForecast head, Head());
    workspace.normed().Prepare(head.formats, static_cast<int64_t>(batch.logits_rows.size()), config_.hidden_size);
  }
  return workspace.bytes();
}

}  // namespace

int64_t& PartOf(absl::string_view module, WeightBytes& bytes) {
  if (absl::EndsWith(module, "_proj")) return absl::StrContains(module, ".mlp.") ? bytes.mlp : bytes.attention;
  if (absl::EndsWith(module, "embed_tokens")) return bytes.embedding;
  return absl::EndsWith(module, "lm_head") ? bytes.lm_head : bytes.norms;
}

absl::StatusOr<WeightBytes> ForecastWeightBytes(const ArtifactReader& reader, const ComputeContext& context) {
  ASSIGN_OR_RETURN(Forecaster forecaster, Forecaster::Make(reader, context));
  return forecaster.Weights();
}

WeightBytes CountWeightBytes(absl::Span<const TensorDataPath> data_path, int64_t resident_weight_bytes) {
  WeightBytes bytes;
  for (const TensorDataPath& path : data_path) PartOf(path.name, bytes) += path.resident_bytes;
  bytes.norms += resident_weight_bytes - bytes.total();
  return bytes;
}

absl::StatusOr<WeightBytes> StoredWeightBytes(const ArtifactReader& reader) {
  WeightBytes bytes;
  for (const std::string& module : reader.WeightNames()) {
    ASSIGN_OR_RETURN(const TensorInfo info, reader.DescribeWeight(module));
    PartOf(module, bytes) += info.stored_bytes;
  }
  return bytes;
}

absl::StatusOr<int64_t> ForecastWorkspaceBytes(const ArtifactReader& reader, const ComputeContext& context, const ForwardBatch& batch) {
  ASSIGN_OR_RETURN(Forecaster forecaster, Forecaster::Make(reader, context));
  return forecaster.Buffers(batch);
}

}  // namespace pith
