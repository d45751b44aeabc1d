#include "model/memory_forecast.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/architectures/architecture.h"
#include "model/forward_pass.h"
#include "model/stored_shape.h"
#include "model/weight_map.h"
#include "nn/linear_forecast.h"

namespace pith {
namespace {

constexpr int64_t kFloatBytes = 4;

class Forecaster {
 public:
  Forecaster(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map, const ComputeContext& context)
      : reader_(reader), config_(config), map_(map), context_(context) {}

  absl::StatusOr<WeightBytes> Run();

 private:
  // Adds the biases to bias_bytes_.
  absl::StatusOr<int64_t> Linear(int64_t layer, std::initializer_list<const char*> modules, bool has_bias);

  const ArtifactReader& reader_;
  const DecoderConfig& config_;
  const WeightMap& map_;
  const ComputeContext& context_;
  int64_t bias_bytes_ = 0;
};

absl::StatusOr<int64_t> Forecaster::Linear(int64_t layer, std::initializer_list<const char*> modules, bool has_bias) {
  std::vector<WeightShape> parts;
  for (const char* module : modules) {
    ASSIGN_OR_RETURN(parts.emplace_back(), StoredShape(reader_, map_.Layer(layer, module)));
    if (has_bias) bias_bytes_ += parts.back().out * kFloatBytes;
  }
  return ForecastLinearBytes(parts, context_);
}

absl::StatusOr<WeightBytes> Forecaster::Run() {
  WeightBytes bytes;
  const int64_t layer_norms = 2 + (config_.post_norms ? 2 : 0);
  bytes.norms = (config_.num_layers * layer_norms + 1) * config_.hidden_size * kFloatBytes;
  if (config_.qk_norm) bytes.norms += config_.num_layers * 2 * config_.head_dim * kFloatBytes;
  for (int64_t layer = 0; layer < config_.num_layers; ++layer) {
    ASSIGN_OR_RETURN(const int64_t qkv, Linear(layer, {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}, config_.qkv_bias));
    ASSIGN_OR_RETURN(const int64_t o, Linear(layer, {"self_attn.o_proj"}, config_.o_bias));
    ASSIGN_OR_RETURN(const int64_t gate_up, Linear(layer, {"mlp.gate_proj", "mlp.up_proj"}, config_.mlp_bias));
    ASSIGN_OR_RETURN(const int64_t down, Linear(layer, {"mlp.down_proj"}, config_.mlp_bias));
    bytes.attention += qkv + o;
    bytes.mlp += gate_up + down;
  }
  ASSIGN_OR_RETURN(const WeightShape table, StoredShape(reader_, map_.Embedding()));
  WeightShape head = table;
  if (!config_.tie_word_embeddings) {  // tied: tokens are looked up in the head's matrix
    ASSIGN_OR_RETURN(bytes.embedding, ForecastEmbeddingBytes(table, context_));
    ASSIGN_OR_RETURN(head, StoredShape(reader_, map_.head));
  }
  ASSIGN_OR_RETURN(bytes.lm_head, ForecastLinearBytes({&head, 1}, context_));
  bytes.norms += bias_bytes_;
  return bytes;
}

}  // namespace

int64_t& PartOf(absl::string_view module, WeightBytes& bytes) {
  if (absl::EndsWith(module, "_proj")) return absl::StrContains(module, ".mlp.") ? bytes.mlp : bytes.attention;
  if (absl::EndsWith(module, "embed_tokens")) return bytes.embedding;
  return absl::EndsWith(module, "lm_head") ? bytes.lm_head : bytes.norms;
}

absl::StatusOr<WeightBytes> ForecastWeightBytes(const ArtifactReader& reader, const ComputeContext& context) {
  ASSIGN_OR_RETURN(const DecoderConfig config, ParseDecoderConfig(reader.config()));
  ASSIGN_OR_RETURN(const Architecture* architecture, FindArchitecture(config.model_type));
  ASSIGN_OR_RETURN(const WeightMap map, MakeWeightMap(reader, architecture->norms));
  return Forecaster(reader, config, map, context).Run();
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

int64_t WorkspaceBytes(const DecoderConfig& config, int num_threads, int64_t rows) {
  Workspace workspace(config, num_threads);
  workspace.Reserve(rows);
  const InputFormat bf16;  // two bytes a value; two planes of int8 take as many, and their scales a few more
  workspace.normed().Prepare({&bf16, 1}, rows, config.hidden_size);
  workspace.attended().Prepare({&bf16, 1}, rows, config.num_heads * config.head_dim);
  workspace.mlp_activation().Prepare({&bf16, 1}, std::min(rows, kMaxMlpRows), config.intermediate_size);
  return workspace.bytes();
}

}  // namespace pith
