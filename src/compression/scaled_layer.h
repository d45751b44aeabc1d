// The dense weights of a model with scales of input channels folded in: (x / s) (W s)^T = x W^T, where what makes x makes x / s.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "artifact/artifact_reader.h"
#include "compression/layer_inputs.h"
#include "tensor/tensor.h"

namespace pith {

// A weight matrix of the model as f32 [out, in]. Errors: those of ReadWeight; kDataLoss for what is no dense matrix.
absl::StatusOr<Tensor> ReadMatrix(const ArtifactReader& reader, const std::string& module);

// Keeps vectors only; matrices are read when they are asked for. Not thread-safe. `reader` must outlive it.
class ScaledLayer {
 public:
  // norm_weight_plus_one as in DecoderConfig.
  ScaledLayer(const ArtifactReader& reader, bool norm_weight_plus_one) : reader_(reader), norm_weight_plus_one_(norm_weight_plus_one) {}

  // Divides the channels of `input` by `scales` (> 0, one per column; equal where columns are tied) and multiplies the consumers' columns.
  // A norm keeps its weights in their dtype, so that they are rounded: consumers are multiplied by what the division came to, which makes
  // up for it exactly. A channel whose norm weight is 0, or would be after rounding, keeps its size. The result is the divisors as they
  // came to. An input can be scaled once. Errors: kDataLoss when a tensor is missing or no longer finite.
  absl::StatusOr<std::vector<float>> Fold(const LayerInput& input, absl::Span<const float> scales);

  // f32 [out, in] with what was folded into its rows and columns.
  absl::StatusOr<Tensor> ReadMatrix(const std::string& module) const;

  // Dense tensors that are no longer those of the reader, in their dtypes: norms and biases, by full name.
  const std::map<std::string, std::shared_ptr<const Tensor>>& changed() const { return changed_; }

 private:
  absl::StatusOr<std::vector<float>> FoldIntoNorm(const std::string& norm, absl::Span<const float> scales);
  absl::Status FoldIntoRows(const LayerInput& input, absl::Span<const float> scales);

  const ArtifactReader& reader_;
  const bool norm_weight_plus_one_;
  std::map<std::string, std::vector<float>> column_scales_, row_divisors_;  // by module
  std::map<std::string, std::shared_ptr<const Tensor>> changed_;
};

}  // namespace pith
