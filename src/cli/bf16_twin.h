// The BF16 twin of a model: every weight matrix replaced by BF16 values of the same shape. What quantization saved is measured against it,
// for the original checkpoint is rarely at hand. Its logits mean nothing; its times and bytes are those of the BF16 model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "artifact/artifact_reader.h"

namespace pith {

class Bf16Twin : public ArtifactReader {
 public:
  // Borrows `reader`. Errors: those of DescribeWeight. Takes the bytes of the largest matrix in BF16; all matrices share them until a
  // model is loaded, which copies.
  static absl::StatusOr<std::unique_ptr<Bf16Twin>> Create(const ArtifactReader& reader);

  // Bytes of the weights of a model loaded from it.
  int64_t weight_bytes() const { return weight_bytes_; }

  std::vector<TensorInfo> Tensors() const override { return reader_.Tensors(); }
  std::vector<std::string> WeightNames() const override { return reader_.WeightNames(); }
  bool HasWeight(absl::string_view name) const override { return reader_.HasWeight(name); }
  absl::StatusOr<Weight> ReadWeight(absl::string_view name) const override;
  absl::StatusOr<std::optional<Weight>> ReadTensor(absl::string_view name) const override { return reader_.ReadTensor(name); }
  absl::StatusOr<std::string> Fingerprint() const override { return reader_.Fingerprint(); }

 private:
  explicit Bf16Twin(const ArtifactReader& reader);

  const ArtifactReader& reader_;
  std::shared_ptr<Tensor> values_;  // as long as the largest matrix
  int64_t weight_bytes_ = 0;
};

}  // namespace pith
