// A dense model with rotations multiplied into its weights: the same model, in a basis that quantizes better. A method that rotates reads
// what it quantizes from here; docs/methods/rotation.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"
#include "base/thread_pool.h"
#include "compression/modifiers/rotation_solver.h"
#include "model/decoder_config.h"
#include "model/weight_map.h"

namespace pith {

// Rotates whenever a matrix is read, and keeps none. A rotated matrix is read as f32, so that codes are chosen for what it is, while
// DescribeWeight says the dtype in which it would be stored. Norms that were folded into the layers they feed are read as ones.
//
// With R1 the head of a model with tied embeddings becomes a matrix of its own, unless the final norm's weights are all 1: it is listed,
// and config() says so. One call at a time, from the thread that may use `pool`.
class RotatedReader : public ArtifactReader {
 public:
  // `base` and `pool` must outlive it. Errors: those of ParseDecoderConfig, FindArchitecture, MakeWeightMap and DecoderRotation::Create;
  // kDataLoss when the final norm is missing.
  static absl::StatusOr<std::unique_ptr<RotatedReader>> Create(const ArtifactReader& base, const RotationOptions& options,
                                                               ThreadPool& pool);

  const RotationOptions& options() const { return rotation_.options(); }
  // What a head that was tied takes as a matrix of its own, as it would be stored; 0: still tied, or never was.
  int64_t untied_head_bytes() const { return untied_head_bytes_; }

  std::vector<TensorInfo> Tensors() const override { return base_.Tensors(); }
  std::vector<std::string> WeightNames() const override;
  bool HasWeight(absl::string_view name) const override;
  absl::StatusOr<TensorInfo> DescribeWeight(absl::string_view name) const override;
  std::vector<std::string> PlainTensorNames() const override { return base_.PlainTensorNames(); }
  // Errors also: kUnimplemented for a matrix that is not dense.
  absl::StatusOr<Weight> ReadWeight(absl::string_view name) const override;
  absl::StatusOr<std::optional<Weight>> ReadTensor(absl::string_view name) const override;
  absl::StatusOr<std::string> Fingerprint() const override { return base_.Fingerprint(); }

 private:
  // A matrix that is rotated.
  struct Place {
    DecoderPart part;
    int64_t layer = 0;
    std::string norm;  // the module whose weights are folded in; empty: none
  };

  RotatedReader(const ArtifactReader& base, DecoderRotation rotation, ThreadPool& pool);
  void ListPlaces(const DecoderConfig& config, const WeightMap& map);
  absl::Status UntieHead(const WeightMap& map);
  // The name in base_.
  absl::string_view Stored(absl::string_view name) const { return name == untied_head_ ? absl::string_view(embedding_) : name; }
  absl::StatusOr<Weight> ReadFoldedNorm(absl::string_view name) const;
  absl::StatusOr<Weight> ReadMatrix(absl::string_view name, const Place& place) const;

  const ArtifactReader& base_;
  const DecoderRotation rotation_;
  ThreadPool& pool_;
  std::map<std::string, Place, std::less<>> places_;
  std::string embedding_, untied_head_;  // untied_head_ empty: the head is as it was
  int64_t untied_head_bytes_ = 0;
};

// The model that a recipe with such a rotation quantizes; null without one. Errors: those of RotatedReader, beginning with the path.
absl::StatusOr<std::unique_ptr<RotatedReader>> OpenRotated(const ArtifactReader& reader, const std::optional<RotationOptions>& rotation,
                                                           ThreadPool& pool);

}  // namespace pith
