// An artifact with some weights replaced: how a pipeline runs a layer with what it has just made of it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "artifact/artifact_reader.h"

namespace pith {

// Thread-safe to read while nothing is set. `base` must outlive it.
class OverlayReader : public ArtifactReader {
 public:
  explicit OverlayReader(const ArtifactReader& base) : base_(base) {
    path_ = base.path();
    format_ = base.format();
    config_ = base.config();
    generation_config_ = base.generation_config();
    tokenizer_files_ = base.tokenizer_files();
  }

  // The weight of a module; `input` as in Weight.
  void SetQuantized(const std::string& module, QuantizedTensor weight, const std::optional<InputQuantization>& input) {
    weights_[module] = Weight{.name = module, .quantized = std::move(weight), .input = input};
  }
  // A dense tensor by its full name: "model.layers.0.input_layernorm.weight", "model.layers.0.self_attn.v_proj.bias".
  void SetTensor(const std::string& tensor, std::shared_ptr<const Tensor> value) {
    const TensorView view = value->view();
    tensors_[tensor] = Weight{.name = tensor, .dense = view, .storage = std::move(value), .stored_bytes = view.num_bytes()};
  }
  void Clear() {
    weights_.clear();
    tensors_.clear();
  }

  std::vector<TensorInfo> Tensors() const override { return base_.Tensors(); }
  std::vector<std::string> WeightNames() const override { return base_.WeightNames(); }
  bool HasWeight(absl::string_view name) const override { return base_.HasWeight(name); }
  std::vector<std::string> PlainTensorNames() const override { return base_.PlainTensorNames(); }
  absl::StatusOr<Weight> ReadWeight(absl::string_view name) const override {
    if (const auto it = weights_.find(std::string(name)); it != weights_.end()) return it->second;
    if (const auto it = tensors_.find(absl::StrCat(name, ".weight")); it != tensors_.end()) {
      Weight weight = it->second;
      weight.name = std::string(name);
      return weight;
    }
    return base_.ReadWeight(name);
  }
  absl::StatusOr<std::optional<Weight>> ReadTensor(absl::string_view name) const override {
    if (const auto it = tensors_.find(std::string(name)); it != tensors_.end()) return it->second;
    return base_.ReadTensor(name);
  }
  absl::StatusOr<std::string> Fingerprint() const override { return base_.Fingerprint(); }

 private:
  const ArtifactReader& base_;
  std::map<std::string, Weight> weights_, tensors_;
};

}  // namespace pith
