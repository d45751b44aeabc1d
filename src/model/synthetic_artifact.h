// For tests only: an artifact in memory, with random or hand-made weights for any architecture of the table.
#pragma once

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "artifact/artifact_reader.h"
#include "base/random.h"
#include "base/status.h"
#include "model/architectures/architecture.h"
#include "model/decoder_config.h"
#include "quantization/formats/outlier_columns.h"

namespace pith {

class SyntheticArtifact : public ArtifactReader {
 public:
  explicit SyntheticArtifact(Json config) {
    path_ = format_ = "synthetic";
    config_ = std::move(config);
  }

  // Every tensor the config asks for, from a counter-based stream: the same seed gives the same bits everywhere. CHECKs that the
  // config parses.
  static std::unique_ptr<SyntheticArtifact> Random(const Json& config, uint64_t seed);

  // Full tensor names ("model.norm.weight"), values in row-major order, stored as bf16.
  void Set(const std::string& tensor, Shape shape, const std::vector<float>& values) {
    Tensor stored(DType::kBF16, shape);
    CHECK_EQ(stored.num_elements(), static_cast<int64_t>(values.size()));
    for (size_t i = 0; i < values.size(); ++i) stored.as<bfloat16>()[i] = ToBfloat16(values[i]);
    dense_[tensor] = std::make_shared<Tensor>(std::move(stored));
  }
  void SetQuantized(const std::string& module, QuantizedTensor tensor) { quantized_[module] = std::move(tensor); }
  // Of every quantized matrix; its outlier columns are kept in bf16, with the weights that the codes say.
  void SetInput(const InputQuantization& input) {
    input_ = input;
    for (auto& [module, tensor] : quantized_) {
      std::vector<float> values(static_cast<size_t>(tensor.out * tensor.in));
      for (int64_t o = 0; o < tensor.out; ++o) tensor.DequantizeRow(o, absl::MakeSpan(values).subspan(o * tensor.in, tensor.in));
      KeepOutlierColumns({values.data(), tensor.out, tensor.in}, input.outlier_columns, tensor);
    }
  }
  // As if the weights lay in these; without a call in none.
  void SetWeightFiles(std::vector<WeightFile> files) { weight_files_ = std::move(files); }
  // As if a file listed these; without a call none are listed.
  void SetTensors(std::vector<TensorInfo> tensors) { tensors_ = std::move(tensors); }
  void Erase(const std::string& tensor) { dense_.erase(tensor); }
  Tensor& dense(const std::string& tensor) { return *dense_.at(tensor); }
  Json& mutable_config() { return config_; }

  // Replaces every dense matrix below "layers." by codes on a symmetric grid. group_size divides all rows' lengths; 0: per channel.
  void QuantizeLayers(int bits, int64_t group_size, QuantizationType type = QuantizationType::kInt);

  std::vector<TensorInfo> Tensors() const override { return tensors_; }
  std::vector<WeightFile> WeightFiles() const override { return weight_files_; }
  std::vector<std::string> WeightNames() const override {
    std::vector<std::string> names;
    for (const auto& [module, tensor] : quantized_) names.push_back(module);
    for (const auto& [name, tensor] : dense_) {
      if (absl::EndsWith(name, ".weight")) names.emplace_back(absl::StripSuffix(name, ".weight"));
    }
    return names;
  }
  std::vector<std::string> PlainTensorNames() const override {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : dense_) {
      if (!absl::EndsWith(name, ".weight")) names.push_back(name);
    }
    return names;
  }
  bool HasWeight(absl::string_view name) const override {
    return quantized_.contains(std::string(name)) || dense_.contains(absl::StrCat(name, ".weight"));
  }
  absl::StatusOr<Weight> ReadWeight(absl::string_view name) const override {
    const auto it = quantized_.find(std::string(name));
    if (it != quantized_.end()) {
      const auto bytes = static_cast<int64_t>(it->second.code.size());
      return Weight{.name = std::string(name), .quantized = it->second, .input = input_, .stored_bytes = bytes};
    }
    ASSIGN_OR_RETURN(std::optional<Weight> weight, ReadTensor(absl::StrCat(name, ".weight")));
    if (!weight.has_value()) return BadFileError(name, ".weight: expected a tensor, found none");
    weight->name = std::string(name);
    return *std::move(weight);
  }
  absl::StatusOr<std::optional<Weight>> ReadTensor(absl::string_view name) const override {
    const auto it = dense_.find(std::string(name));
    if (it == dense_.end()) return std::nullopt;
    const TensorView view = it->second->view();
    return Weight{.name = std::string(name), .dense = view, .storage = it->second, .stored_bytes = view.num_bytes()};
  }
  absl::StatusOr<std::string> Fingerprint() const override { return "synthetic"; }

 private:
  void SetRandom(const std::string& tensor, Shape shape, float mean, float deviation, uint64_t seed);

  std::map<std::string, std::shared_ptr<Tensor>> dense_;
  std::map<std::string, QuantizedTensor> quantized_;
  std::optional<InputQuantization> input_;
  std::vector<WeightFile> weight_files_;
  std::vector<TensorInfo> tensors_;
};

inline void SyntheticArtifact::SetRandom(const std::string& tensor, Shape shape, float mean, float deviation, uint64_t seed) {
  uint64_t stream = 1469598103934665603u;  // FNV-1a of the name: tensors do not depend on each other's order
  for (const char c : tensor) stream = (stream ^ static_cast<uint8_t>(c)) * 1099511628211u;
  RandomStream random(seed, stream);
  std::vector<float> values(NumElements(shape));
  for (float& value : values) value = mean + deviation * random.Normal();
  Set(tensor, std::move(shape), values);
}

inline std::unique_ptr<SyntheticArtifact> SyntheticArtifact::Random(const Json& config, uint64_t seed) {
  auto artifact = std::make_unique<SyntheticArtifact>(config);
  const absl::StatusOr<DecoderConfig> parsed = ParseDecoderConfig(config);
  CHECK(parsed.ok());
  const DecoderConfig& c = *parsed;
  const LayerNormNames norms = (*FindArchitecture(c.model_type))->norms;
  const float norm_mean = c.norm_weight_plus_one ? 0.0f : 1.0f;
  const auto matrix = [&](const std::string& module, int64_t out, int64_t in, float gain, bool bias) {
    artifact->SetRandom(module + ".weight", {out, in}, 0.0f, gain / std::sqrt(static_cast<float>(in)), seed);
    if (bias) artifact->SetRandom(module + ".bias", {out}, 0.0f, 0.3f, seed);
  };
  const auto norm = [&](const std::string& module, int64_t dim) { artifact->SetRandom(module + ".weight", {dim}, norm_mean, 0.3f, seed); };
  const int64_t queries = c.num_heads * c.head_dim, keys = c.num_kv_heads * c.head_dim;
  matrix("model.embed_tokens", c.vocab_size, c.hidden_size, 1.0f, false);
  if (!c.tie_word_embeddings) matrix("lm_head", c.vocab_size, c.hidden_size, 1.0f, false);
  norm("model.norm", c.hidden_size);
  for (int64_t i = 0; i < c.num_layers; ++i) {
    const std::string layer = absl::StrCat("model.layers.", i, ".");
    for (const char* name : {norms.attention_norm, norms.post_attention_norm, norms.mlp_norm, norms.post_mlp_norm}) {
      if (name != nullptr) norm(layer + name, c.hidden_size);
    }
    matrix(layer + "self_attn.q_proj", queries, c.hidden_size, 1.7f, c.qkv_bias);
    matrix(layer + "self_attn.k_proj", keys, c.hidden_size, 1.7f, c.qkv_bias);
    matrix(layer + "self_attn.v_proj", keys, c.hidden_size, 1.0f, c.qkv_bias);
    matrix(layer + "self_attn.o_proj", c.hidden_size, queries, 1.0f, c.o_bias);
    if (c.qk_norm) norm(layer + "self_attn.q_norm", c.head_dim);
    if (c.qk_norm) norm(layer + "self_attn.k_norm", c.head_dim);
    matrix(layer + "mlp.gate_proj", c.intermediate_size, c.hidden_size, 1.0f, c.mlp_bias);
    matrix(layer + "mlp.up_proj", c.intermediate_size, c.hidden_size, 1.0f, c.mlp_bias);
    matrix(layer + "mlp.down_proj", c.hidden_size, c.intermediate_size, 1.0f, c.mlp_bias);
  }
  return artifact;
}

inline void SyntheticArtifact::QuantizeLayers(int bits, int64_t requested_group_size, QuantizationType type) {
  std::vector<std::string> matrices;
  for (const auto& [name, tensor] : dense_) {
    if (absl::StrContains(name, "layers.") && tensor->shape().size() == 2) matrices.push_back(name);
  }
  for (const std::string& name : matrices) {
    const std::shared_ptr<Tensor> dense = dense_.at(name);
    const auto values = dense->as<bfloat16>();
    const int64_t group_size = requested_group_size > 0 ? requested_group_size : dense->shape()[1];
    QuantizedTensor q{.out = dense->shape()[0],
                      .in = dense->shape()[1],
                      .bits = bits,
                      .type = type,
                      .group_size = group_size,
                      .format = "pack-quantized",
                      .scale_dtype = DType::kBF16,
                      .stored_bits_per_weight = bits + 16.0 / static_cast<double>(group_size)};
    const bool fp8 = type == QuantizationType::kFloat;
    const float top = fp8 ? 448.0f : static_cast<float>(q.default_zero_point() - 1);
    for (size_t begin = 0; begin < values.size(); begin += group_size) {
      float largest = 1e-6f;
      for (int64_t i = 0; i < group_size; ++i) largest = std::max(largest, std::fabs(ToFloat(values[begin + i])));
      q.scale.push_back(RoundToBfloat16(largest / top));
      for (int64_t i = 0; i < group_size; ++i) {
        const float scaled = ToFloat(values[begin + i]) / q.scale.back();
        const float level = std::fmin(std::fmax(std::nearbyint(scaled), -top - 1.0f), top);
        q.code.push_back(fp8 ? ToFloat8E4M3(scaled).bits : static_cast<uint8_t>(level + top + 1.0f));
      }
    }
    SetQuantized(std::string(absl::StripSuffix(name, ".weight")), std::move(q));
    dense_.erase(name);
  }
}

}  // namespace pith
