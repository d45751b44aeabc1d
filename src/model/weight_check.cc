#include "model/weight_check.h"

#include "base/status.h"
#include "model/architectures/architecture.h"

namespace pith {
namespace {

absl::Status CheckShape(const ArtifactReader& reader, const std::string& name, const Shape& expected) {
  ASSIGN_OR_RETURN(const TensorInfo info, reader.DescribeWeight(name));
  if (info.shape == expected) return absl::OkStatus();
  return BadFileError(name, ".weight: expected ", ShapeName(expected), " from config.json, found ", ShapeName(info.shape));
}

absl::Status CheckLayer(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map, int64_t layer) {
  const int64_t hidden = config.hidden_size, inter = config.intermediate_size, queries = config.num_heads * config.head_dim,
                keys = config.num_kv_heads * config.head_dim;
  struct Part {
    const char* module;  // null: the architecture has none
    Shape shape;
  };
  const LayerNormNames& norms = map.norms;
  const Part parts[] = {{norms.attention_norm, {hidden}},
                        {norms.post_attention_norm, {hidden}},
                        {norms.mlp_norm, {hidden}},
                        {norms.post_mlp_norm, {hidden}},
                        {config.qk_norm ? "self_attn.q_norm" : nullptr, {config.head_dim}},
                        {config.qk_norm ? "self_attn.k_norm" : nullptr, {config.head_dim}},
                        {"self_attn.q_proj", {queries, hidden}},
                        {"self_attn.k_proj", {keys, hidden}},
                        {"self_attn.v_proj", {keys, hidden}},
                        {"self_attn.o_proj", {hidden, queries}},
                        {"mlp.gate_proj", {inter, hidden}},
                        {"mlp.up_proj", {inter, hidden}},
                        {"mlp.down_proj", {hidden, inter}}};
  for (const Part& part : parts) {
    if (part.module != nullptr) RETURN_IF_ERROR(CheckShape(reader, map.Layer(layer, part.module), part.shape));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckWeights(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map) {
  RETURN_IF_ERROR(CheckShape(reader, map.Embedding(), {config.vocab_size, config.hidden_size}));
  for (int64_t layer = 0; layer < config.num_layers; ++layer) RETURN_IF_ERROR(CheckLayer(reader, config, map, layer));
  RETURN_IF_ERROR(CheckShape(reader, map.FinalNorm(), {config.hidden_size}));
  return config.tie_word_embeddings ? absl::OkStatus() : CheckShape(reader, map.head, {config.vocab_size, config.hidden_size});
}

absl::Status CheckWeights(const ArtifactReader& reader, const DecoderConfig& config) {
  ASSIGN_OR_RETURN(const Architecture* architecture, FindArchitecture(config.model_type));
  ASSIGN_OR_RETURN(const WeightMap map, MakeWeightMap(reader, architecture->norms));
  return CheckWeights(reader, config, map);
}

absl::Status CheckKnownWeights(const ArtifactReader& reader) {
  const absl::StatusOr<DecoderConfig> config = ParseDecoderConfig(reader.config());
  if (absl::IsUnimplemented(config.status())) return absl::OkStatus();
  return Annotate(config.ok() ? CheckWeights(reader, *config) : config.status(), reader.path());
}

}  // namespace pith
