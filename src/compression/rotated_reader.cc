#include "compression/rotated_reader.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "artifact/module_names.h"
#include "base/status.h"
#include "model/architectures/architecture.h"
#include "model/weight_map.h"
#include "tensor/store_float.h"

namespace pith {
namespace {

absl::StatusOr<std::vector<float>> ReadDense(const std::string& name, const Weight& weight) {
  if (!weight.dense.has_value()) return NotSupportedError(name, ": expected a dense weight to rotate, found a quantized one");
  std::vector<float> values(static_cast<size_t>(weight.dense->num_elements()));
  RETURN_IF_ERROR(ConvertToFloat(*weight.dense, absl::MakeSpan(values)));
  return values;
}

Weight MakeWeight(absl::string_view name, std::shared_ptr<const Tensor> tensor, int64_t stored_bytes) {
  const TensorView view = tensor->view();
  return {.name = std::string(name), .dense = view, .storage = std::move(tensor), .stored_bytes = stored_bytes};
}

}  // namespace

RotatedReader::RotatedReader(const ArtifactReader& base, DecoderRotation rotation, ThreadPool& pool)
    : base_(base), rotation_(std::move(rotation)), pool_(pool) {
  path_ = base.path();
  format_ = base.format();
  config_ = base.config();
  generation_config_ = base.generation_config();
  tokenizer_files_ = base.tokenizer_files();
}

absl::StatusOr<std::unique_ptr<RotatedReader>> RotatedReader::Create(const ArtifactReader& base, const RotationOptions& options,
                                                                     ThreadPool& pool) {
  ASSIGN_OR_RETURN(const DecoderConfig config, ParseDecoderConfig(base.config()));
  ASSIGN_OR_RETURN(const Architecture* architecture, FindArchitecture(config.model_type));
  ASSIGN_OR_RETURN(const WeightMap map, MakeWeightMap(base, architecture->norms));
  ASSIGN_OR_RETURN(DecoderRotation rotation, DecoderRotation::Create(config, options));
  std::unique_ptr<RotatedReader> reader(new RotatedReader(base, std::move(rotation), pool));
  reader->ListPlaces(config, map);
  if (options.residual && config.tie_word_embeddings) RETURN_IF_ERROR(reader->UntieHead(map));
  return reader;
}

void RotatedReader::ListPlaces(const DecoderConfig& config, const WeightMap& map) {
  embedding_ = map.Embedding();
  if (options().residual) {
    places_[embedding_] = {.part = DecoderPart::kEmbedding};
    places_[map.head] = {.part = DecoderPart::kReader, .norm = map.FinalNorm()};
  }
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const auto add = [&](const char* module, DecoderPart part, const char* norm) {
      places_[map.Layer(i, module)] = {.part = part, .layer = i, .norm = norm == nullptr ? "" : map.Layer(i, norm)};
    };
    add("self_attn.v_proj", DecoderPart::kValue, map.norms.attention_norm);
    add("self_attn.o_proj", DecoderPart::kAttentionOutput, nullptr);
    if (!options().residual) continue;
    for (const char* module : {"self_attn.q_proj", "self_attn.k_proj"}) add(module, DecoderPart::kReader, map.norms.attention_norm);
    for (const char* module : {"mlp.gate_proj", "mlp.up_proj"}) add(module, DecoderPart::kReader, map.norms.mlp_norm);
    add("mlp.down_proj", DecoderPart::kMlpOutput, nullptr);
  }
}

absl::Status RotatedReader::UntieHead(const WeightMap& map) {
  ASSIGN_OR_RETURN(const Weight norm, base_.ReadWeight(map.FinalNorm()));
  ASSIGN_OR_RETURN(const std::vector<float> values, ReadDense(map.FinalNorm(), norm));
  const float unit = rotation_.unit_norm_weight();
  if (std::all_of(values.begin(), values.end(), [&](float value) { return value == unit; })) return absl::OkStatus();
  ASSIGN_OR_RETURN(const TensorInfo embedding, base_.DescribeWeight(embedding_));
  untied_head_ = map.head;
  untied_head_bytes_ = embedding.stored_bytes;
  config_["tie_word_embeddings"] = false;
  return absl::OkStatus();
}

std::vector<std::string> RotatedReader::WeightNames() const {
  std::vector<std::string> names = base_.WeightNames();
  if (!untied_head_.empty()) names.insert(std::upper_bound(names.begin(), names.end(), untied_head_, ModuleNameLess), untied_head_);
  return names;
}

bool RotatedReader::HasWeight(absl::string_view name) const { return base_.HasWeight(Stored(name)); }

absl::StatusOr<TensorInfo> RotatedReader::DescribeWeight(absl::string_view name) const {
  ASSIGN_OR_RETURN(TensorInfo info, base_.DescribeWeight(Stored(name)));
  if (name == untied_head_) info.name = absl::StrCat(name, ".weight");
  return info;
}

absl::StatusOr<Weight> RotatedReader::ReadFoldedNorm(absl::string_view name) const {
  ASSIGN_OR_RETURN(const Weight weight, base_.ReadWeight(name));
  if (!weight.dense.has_value()) return BadFileError(name, ".weight: expected a dense vector, found a quantized matrix");
  auto ones = std::make_shared<Tensor>(weight.dense->dtype, weight.dense->shape);
  for (int64_t i = 0; i < ones->num_elements(); ++i) StoreFloat(rotation_.unit_norm_weight(), i, *ones);
  return MakeWeight(name, std::move(ones), weight.stored_bytes);
}

absl::StatusOr<Weight> RotatedReader::ReadMatrix(absl::string_view name, const Place& place) const {
  ASSIGN_OR_RETURN(const Weight weight, base_.ReadWeight(Stored(name)));
  if (!weight.dense.has_value()) return NotSupportedError(name, ": expected a dense weight to rotate, found a quantized one");
  const Shape& shape = weight.dense->shape;
  if (shape.size() != 2) return BadFileError(name, ".weight: expected a matrix, found shape ", ShapeName(shape));
  std::vector<float> norm;
  if (!place.norm.empty()) {
    ASSIGN_OR_RETURN(const Weight stored, base_.ReadWeight(place.norm));
    ASSIGN_OR_RETURN(norm, ReadDense(place.norm, stored));
  }
  auto matrix = std::make_shared<Tensor>(DType::kF32, shape);
  RETURN_IF_ERROR(ConvertToFloat(*weight.dense, matrix->as<float>()));
  RETURN_IF_ERROR(
      Annotate(rotation_.RotateMatrix(place.part, place.layer, norm, {matrix->as<float>().data(), shape[0], shape[1]}, pool_), name));
  return MakeWeight(name, std::move(matrix), weight.stored_bytes);
}

absl::StatusOr<Weight> RotatedReader::ReadWeight(absl::string_view name) const {
  if (const auto it = places_.find(name); it != places_.end()) return ReadMatrix(name, it->second);
  const bool folded = options().residual &&
                      std::any_of(places_.begin(), places_.end(), [&](const auto& p) { return p.second.norm == name; });
  return folded ? ReadFoldedNorm(name) : base_.ReadWeight(name);
}

absl::StatusOr<std::optional<Weight>> RotatedReader::ReadTensor(absl::string_view name) const {
  absl::string_view module = name;
  if (absl::ConsumeSuffix(&module, ".weight")) {
    if (!HasWeight(module)) return base_.ReadTensor(name);
    ASSIGN_OR_RETURN(Weight weight, ReadWeight(module));
    weight.name = std::string(name);
    return weight;
  }
  ASSIGN_OR_RETURN(std::optional<Weight> tensor, base_.ReadTensor(name));
  const auto it = absl::ConsumeSuffix(&module, ".bias") ? places_.find(module) : places_.end();
  if (!tensor.has_value() || it == places_.end()) return tensor;
  ASSIGN_OR_RETURN(std::vector<float> bias, ReadDense(std::string(name), *tensor));
  RETURN_IF_ERROR(Annotate(rotation_.RotateBias(it->second.part, it->second.layer, absl::MakeSpan(bias)), name));
  auto rotated = std::make_shared<Tensor>(tensor->dense->dtype, tensor->dense->shape);
  for (size_t i = 0; i < bias.size(); ++i) StoreFloat(bias[i], static_cast<int64_t>(i), *rotated);
  return MakeWeight(name, std::move(rotated), tensor->stored_bytes);
}

absl::StatusOr<std::unique_ptr<RotatedReader>> OpenRotated(const ArtifactReader& reader, const std::optional<RotationOptions>& rotation,
                                                           ThreadPool& pool) {
  if (!rotation.has_value()) return nullptr;
  absl::StatusOr<std::unique_ptr<RotatedReader>> rotated = RotatedReader::Create(reader, *rotation, pool);
  if (!rotated.ok()) return Annotate(rotated.status(), reader.path());
  return rotated;
}

}  // namespace pith
