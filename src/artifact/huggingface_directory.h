// ArtifactReader over a Hugging Face model directory: config.json, safetensors, tokenizer files. Weights are dense (F32, F16, BF16) or
// quantized in any format of quantization/formats/format_table.h (compressed-tensors, GPTQ, AWQ, bitsandbytes, fp8 blocks).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "artifact/artifact_reader.h"
#include "artifact/safetensors_shards.h"
#include "quantization/formats/format_table.h"
#include "quantization/quantization_config.h"

namespace pith {

class HuggingFaceDirectory : public ArtifactReader {
 public:
  // Checked here, before any weight is read: all files parse; every module has a float weight or the complete tensors of its scheme's
  // format, with their dtypes and shapes; quantization_config explains every module; biases fit; no tensor is left over; a head exists
  // unless the config ties it. When config.json does not say tie_word_embeddings, config() says whether a head is stored.
  // Errors: those of ArtifactReader::Open.
  static absl::StatusOr<std::unique_ptr<ArtifactReader>> Open(const std::string& directory);

  std::vector<TensorInfo> Tensors() const override;
  std::vector<WeightFile> WeightFiles() const override;
  std::vector<std::string> WeightNames() const override { return weight_names_; }
  bool HasWeight(absl::string_view name) const override { return modules_.contains(name); }
  absl::StatusOr<TensorInfo> DescribeWeight(absl::string_view name) const override;
  std::vector<std::string> PlainTensorNames() const override { return plain_names_; }
  absl::StatusOr<Weight> ReadWeight(absl::string_view name) const override;
  absl::StatusOr<std::optional<Weight>> ReadTensor(absl::string_view name) const override;
  absl::StatusOr<std::string> Fingerprint() const override;

 private:
  // One module with a weight.
  struct Module {
    std::vector<std::pair<std::string, ShardedTensor>> tensors;  // suffix -> tensor, the bias left out
    const QuantizationScheme* scheme = nullptr;                  // nullptr: dense; points into quantization_
    MatrixShape shape;                                           // of a quantized module
    std::optional<InputQuantization> input;                      // of a quantized module
  };

  HuggingFaceDirectory(const std::string& directory, SafetensorsShards shards) : shards_(std::move(shards)) { path_ = directory; }
  absl::Status GroupTensors();
  absl::Status CheckModule(const std::string& name, Module* module);
  // Adds what the formats have to say of the first module of every scheme to notes_.
  absl::Status AddNotes();
  // The file a module's tensors lie in, or the directory when they are spread over several: how a message starts.
  std::string Location(const Module& module) const;
  absl::Status CheckPlainTensors() const;
  absl::Status CheckHead();
  absl::StatusOr<ModuleTensors> ViewModule(const std::string& name, const Module& module) const;
  absl::StatusOr<Weight> ReadDense(absl::string_view name, const ShardedTensor& stored) const;

  SafetensorsShards shards_;
  std::optional<QuantizationConfig> quantization_;
  absl::flat_hash_map<std::string, Module> modules_;
  std::vector<std::string> weight_names_, plain_names_;
  std::string stored_config_;  // for the fingerprint
};

}  // namespace pith
