#include "model/declared_kv_cache.h"

#include "absl/strings/str_cat.h"
#include "base/json.h"
#include "base/status.h"
#include "model/architectures/architecture.h"
#include "quantization/kv_cache_scheme.h"
#include "tensor/tensor.h"

namespace pith {
namespace {

// The tensor's values, one per KV head; nullopt when neither name is there.
absl::StatusOr<std::optional<std::vector<float>>> ReadScales(const ArtifactReader& reader, const DecoderConfig& config,
                                                             const WeightMap& map, int64_t layer, absl::string_view part) {
  std::string name = KvScaleName(map, layer, part);
  auto stored = reader.ReadTensor(name);
  if (stored.ok() && !stored->has_value()) {
    name = map.Layer(layer, absl::StrCat("self_attn.", part, "_proj.output_scale"));
    stored = reader.ReadTensor(name);
  }
  RETURN_IF_ERROR(stored.status());
  if (!stored->has_value()) return std::optional<std::vector<float>>();
  const TensorView& values = *(*stored)->dense;
  const int64_t count = values.num_elements();
  if (count != 1 && count != config.num_kv_heads) {
    return BadFileError(name, ": expected 1 scale or ", config.num_kv_heads, " (KV heads), found ", ShapeName(values.shape));
  }
  std::vector<float> scales(static_cast<size_t>(count));
  RETURN_IF_ERROR(Annotate(ConvertToFloat(values, absl::MakeSpan(scales)), name));
  for (const float scale : scales) {
    if (!(scale >= kKvSmallest && scale <= kLargestKvScale)) {
      return BadFileError(name, ": expected scales from 2^-100 to 2^100, found ", scale);
    }
  }
  if (count == 1) scales.assign(static_cast<size_t>(config.num_kv_heads), scales[0]);
  return std::optional<std::vector<float>>(std::move(scales));
}

// Of all layers, or of none.
absl::StatusOr<std::vector<KvScales>> ReadLayers(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map) {
  std::vector<KvScales> layers;
  std::string present, absent;
  for (int64_t i = 0; i < config.num_layers; ++i) {
    KvScales scales;
    for (const auto& [part, values] : {std::pair{"k", &scales.key}, std::pair{"v", &scales.value}}) {
      ASSIGN_OR_RETURN(std::optional<std::vector<float>> stored, ReadScales(reader, config, map, i, part));
      std::string& example = stored.has_value() ? present : absent;
      if (example.empty()) example = KvScaleName(map, i, part);
      if (stored.has_value()) *values = *std::move(stored);
    }
    layers.push_back(std::move(scales));
  }
  if (present.empty()) return std::vector<KvScales>();
  if (!absent.empty()) return BadFileError(absent, ": expected a scale, since there is a ", present, ", found none");
  return layers;
}

}  // namespace

std::string KvScaleName(const WeightMap& map, int64_t layer, absl::string_view part) {
  return map.Layer(layer, absl::StrCat("self_attn.", part, "_scale"));
}

absl::StatusOr<DeclaredKvCache> ReadDeclaredKvCache(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map) {
  DeclaredKvCache declared;
  const Json* quantization = FindMember(reader.config(), "quantization_config");
  const Json* scheme = quantization == nullptr ? nullptr : FindMember(*quantization, "kv_cache_scheme");
  if (scheme == nullptr) return declared;
  ASSIGN_OR_RETURN(declared.scheme, ParseKvCacheArgs(*scheme));
  const QuantizationArgs& args = *declared.scheme;
  if (args.num_bits != 8 || !args.symmetric) {
    return NotSupportedError("kv_cache_scheme: expected 8 bits, symmetric, found ", args.num_bits, " bits, ",
                             args.symmetric ? "symmetric" : "asymmetric");
  }
  declared.dtype = args.type == QuantizationType::kFloat ? KvDtype::kFp8 : KvDtype::kInt8;
  if (declared.dtype == KvDtype::kFp8 && !args.dynamic) {
    ASSIGN_OR_RETURN(declared.scales, ReadLayers(reader, config, map));
  }
  return declared;
}

absl::StatusOr<DeclaredKvCache> ReadDeclaredKvCache(const ArtifactReader& reader, const DecoderConfig& config) {
  ASSIGN_OR_RETURN(const Architecture* architecture, FindArchitecture(config.model_type));
  ASSIGN_OR_RETURN(const WeightMap map, MakeWeightMap(reader, architecture->norms));
  return ReadDeclaredKvCache(reader, config, map);
}

}  // namespace pith
