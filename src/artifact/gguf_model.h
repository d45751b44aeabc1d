// ArtifactReader over a GGUF file of a known architecture: names, config, row order and norm weights are those of Hugging Face.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "artifact/artifact_reader.h"
#include "artifact/gguf.h"
#include "artifact/gguf_architecture.h"

namespace pith {

class GgufModel : public ArtifactReader {
 public:
  // Checked here, before any weight is read: the container; every tensor the architecture has, with its shape; no tensor beside them;
  // the vocabulary. Errors: those of ArtifactReader::Open.
  static absl::StatusOr<std::unique_ptr<ArtifactReader>> Open(const std::string& path);
  // The same for a file already read.
  static absl::StatusOr<std::unique_ptr<GgufModel>> Make(GgufFile file);

  std::vector<TensorInfo> Tensors() const override;
  std::vector<WeightFile> WeightFiles() const override;
  std::vector<std::string> WeightNames() const override { return weight_names_; }
  bool HasWeight(absl::string_view name) const override;
  absl::StatusOr<TensorInfo> DescribeWeight(absl::string_view name) const override;
  std::vector<std::string> PlainTensorNames() const override { return bias_names_; }
  absl::StatusOr<Weight> ReadWeight(absl::string_view name) const override;
  absl::StatusOr<std::optional<Weight>> ReadTensor(absl::string_view name) const override;
  absl::StatusOr<std::string> Fingerprint() const override;

 private:
  // A tensor under its Hugging Face name and what has to be undone.
  struct Entry {
    const GgufTensor* tensor = nullptr;
    int64_t interleaved_heads = 0;  // > 0: heads whose rows are to be put back in halves
    bool minus_one = false;         // a norm weight stored plus one
  };

  explicit GgufModel(GgufFile file) : file_(std::move(file)) {}
  absl::Status MapTensors(const GgufArchitecture& architecture, const GgufSizes& sizes);
  absl::Status MapModule(const GgufArchitecture& architecture, const GgufSizes& sizes, int64_t layer, const GgufModule& module);
  absl::Status AddEntry(const std::string& gguf_name, const std::string& name, const Shape& shape, Entry entry);
  absl::Status CheckLeftovers() const;
  absl::StatusOr<Weight> ReadEntry(absl::string_view name, const Entry& entry) const;
  absl::StatusOr<Weight> ReadDense(const Entry& entry) const;

  GgufFile file_;
  absl::flat_hash_map<std::string, Entry> entries_;       // full Hugging Face name -> tensor
  absl::flat_hash_map<std::string, std::string> mapped_;  // GGUF name -> full Hugging Face name
  std::vector<std::string> weight_names_, bias_names_;
};

}  // namespace pith
