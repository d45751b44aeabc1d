// Reads the weights of a decoder from an artifact, checks every shape against the config, and builds the modules that run them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"
#include "model/decoder_config.h"
#include "model/decoder_layer.h"
#include "model/prepack_cache.h"
#include "model/weight_map.h"
#include "nn/embedding.h"
#include "nn/lm_head.h"
#include "nn/rms_norm.h"

namespace pith {

struct BoundDecoder {
  Embedding embedding;
  std::vector<DecoderLayer> layers;
  LmHead head;
  std::vector<TensorDataPath> data_path;                  // embedding, layers in order, head
  std::unique_ptr<RotaryEmbedding> rotary, rotary_local;  // rotary_local null: the same as rotary
};

// Errors: kDataLoss for missing or misshapen tensors, for biases the config does not announce, and for NaN or infinities; kUnimplemented
// for formats without a kernel; kCancelled after an interrupt. May throw std::bad_alloc. `progress` is called by whichever thread read a
// matrix, one call at a time.
// With `cache` the matrices come from it, prepacked as they are, and only norms and biases from the artifact; kDataLoss and kAborted may
// then be errors of the cache too.
absl::StatusOr<BoundDecoder> BindWeights(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map,
                                         const ComputeContext& context, const std::function<void(int64_t, int64_t)>& progress,
                                         PrepackCache* cache = nullptr);

// One layer alone, on the calling thread and `context`'s pool, without its RoPE; the embedding alone; the final norm alone; embedding and
// head, of which a tied one is the embedding's matrix, without layers. Shapes have been checked
// (CheckWeights). Errors as above.
absl::StatusOr<DecoderLayer> ReadDecoderLayer(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map,
                                              const ComputeContext& context, int64_t index);
absl::StatusOr<Embedding> ReadEmbedding(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map,
                                        const ComputeContext& context);
absl::StatusOr<RmsNorm> ReadFinalNorm(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map,
                                      const ComputeContext& context);
absl::StatusOr<BoundDecoder> ReadEmbeddingAndHead(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map,
                                                  const ComputeContext& context);

}  // namespace pith
