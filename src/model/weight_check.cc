#include "model/weight_check.h"

#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "artifact/module_names.h"
#include "base/status.h"
#include "model/architectures/architecture.h"

namespace pith {
namespace {

absl::Status CheckShape(const ArtifactReader& reader, const std::string& name, const Shape& expected) {
  ASSIGN_OR_RETURN(const TensorInfo info, reader.DescribeWeight(name));
  if (info.shape == expected) return absl::OkStatus();
  return BadFileError(name, ".weight: expected ", ShapeName(expected), " from config.json, found ", ShapeName(info.shape));
}

// A weight of every layer.
struct LayerPart {
  const char* module;  // null: the architecture has none
  Shape shape;         // of a Linear: a matrix
};

std::vector<LayerPart> LayerParts(const DecoderConfig& config, const LayerNormNames& norms) {
  const int64_t hidden = config.hidden_size, inter = config.intermediate_size, queries = config.num_heads * config.head_dim,
                keys = config.num_kv_heads * config.head_dim;
  return {{norms.attention_norm, {hidden}},
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
}

// Last parts of the names of tensors that may lie beside a decoder's weights without changing what it computes: frequencies that follow
// from the config, and scales for a cache and sums of 8 bits that are kept in more bits here unless the config declares them.
constexpr absl::string_view kHarmlessTensors[] = {"inv_freq", "k_scale",           "v_scale",     "kv_scale",
                                                  "q_scale",  "prob_output_scale", "output_scale"};

// First parts of the names of what a checkpoint may hold beside its decoder: other senses, heads that predict further tokens.
constexpr absl::string_view kOtherParts[] = {"vision_tower", "vision_model", "visual", "multi_modal_projector", "audio_tower", "mtp"};

template <size_t N> bool IsOneOf(const absl::string_view (&names)[N], absl::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Tensors of one kind, of which a message names the first.
struct Strays {
  std::string first;
  int64_t count = 0;

  void Add(const std::string& name) {
    if (count++ == 0) first = name;
  }
  std::string Others() const { return count > 1 ? absl::StrCat(" (and ", count - 1, " more)") : ""; }
};

// What an artifact holds beside the weights that its config asks for.
class Leftovers {
 public:
  Leftovers(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map);

  // OK when leaving all of it out changes nothing that is known to matter.
  absl::Status Check() const;
  const std::vector<std::string>& unknown() const { return unknown_; }

 private:
  void Sort(const std::string& name);
  void SortOfLayer(const std::string& name);

  const DecoderConfig& config_;
  const std::string layers_;             // "model.layers."
  std::map<std::string, bool> modules_;  // whose weight is read; true: its bias too
  std::vector<std::string> unknown_;     // may matter or not
  Strays beyond_, unasked_;
  int64_t layer_beyond_ = 0;  // of beyond_.first
};

Leftovers::Leftovers(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map)
    : config_(config), layers_(map.prefix + "layers.") {
  modules_ = {{map.Embedding(), config.tie_word_embeddings}, {map.FinalNorm(), false}, {map.head, !config.tie_word_embeddings}};
  for (const LayerPart& part : LayerParts(config, map.norms)) {
    for (int64_t layer = 0; part.module != nullptr && layer < config.num_layers; ++layer) {
      modules_[map.Layer(layer, part.module)] = part.shape.size() == 2;
    }
  }
  for (const std::string& module : reader.WeightNames()) {
    if (!modules_.contains(module)) Sort(module + ".weight");
  }
  for (const std::string& name : reader.PlainTensorNames()) {
    const auto [module, suffix] = SplitTensorName(name);
    const auto found = modules_.find(std::string(module));
    if (suffix != "bias" || found == modules_.end() || !found->second) Sort(name);
  }
}

void Leftovers::Sort(const std::string& name) {
  const auto [module, suffix] = SplitTensorName(name);
  if (absl::StartsWith(name, layers_)) return SortOfLayer(name);
  if (suffix == "bias" && modules_.contains(std::string(module))) return unasked_.Add(name);
  const absl::string_view rest = absl::StripPrefix(name, "model.");
  if (IsOneOf(kHarmlessTensors, suffix) || IsOneOf(kOtherParts, rest.substr(0, rest.find('.')))) return;
  unknown_.push_back(name);
}

void Leftovers::SortOfLayer(const std::string& name) {
  const absl::string_view rest = absl::string_view(name).substr(layers_.size());
  int64_t layer = 0;
  if (absl::SimpleAtoi(rest.substr(0, rest.find('.')), &layer) && layer >= config_.num_layers) {
    if (beyond_.count == 0) layer_beyond_ = layer;
    return beyond_.Add(name);
  }
  const absl::string_view suffix = SplitTensorName(name).second;
  if (suffix == "weight" || suffix == "bias") return unasked_.Add(name);
  if (!IsOneOf(kHarmlessTensors, suffix)) unknown_.push_back(name);
}

absl::Status Leftovers::Check() const {
  if (beyond_.count > 0) {
    return BadFileError(Printable(beyond_.first), ": expected ", config_.num_layers, config_.num_layers == 1 ? " layer" : " layers",
                        " as config.json says, found a weight of layer ", layer_beyond_ + 1, beyond_.Others());
  }
  if (unasked_.count > 0) {
    return BadFileError(Printable(unasked_.first), ": expected only weights that config.json asks for, found this one", unasked_.Others());
  }
  return absl::OkStatus();
}

absl::Status CheckLayer(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map, int64_t layer) {
  for (const LayerPart& part : LayerParts(config, map.norms)) {
    if (part.module != nullptr) RETURN_IF_ERROR(CheckShape(reader, map.Layer(layer, part.module), part.shape));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckWeights(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map) {
  RETURN_IF_ERROR(CheckShape(reader, map.Embedding(), {config.vocab_size, config.hidden_size}));
  for (int64_t layer = 0; layer < config.num_layers; ++layer) RETURN_IF_ERROR(CheckLayer(reader, config, map, layer));
  RETURN_IF_ERROR(CheckShape(reader, map.FinalNorm(), {config.hidden_size}));
  if (!config.tie_word_embeddings) RETURN_IF_ERROR(CheckShape(reader, map.head, {config.vocab_size, config.hidden_size}));
  return Leftovers(reader, config, map).Check();
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

std::vector<std::string> UnusedTensors(const ArtifactReader& reader) {
  const absl::StatusOr<DecoderConfig> config = ParseDecoderConfig(reader.config());
  if (!config.ok()) return {};
  const absl::StatusOr<const Architecture*> architecture = FindArchitecture(config->model_type);
  if (!architecture.ok()) return {};
  const absl::StatusOr<WeightMap> map = MakeWeightMap(reader, (*architecture)->norms);
  return map.ok() ? Leftovers(reader, *config, *map).unknown() : std::vector<std::string>();
}

}  // namespace pith
