// What a model will take of memory, from the shapes and formats in its artifact; no weight is read. Beside it, the same sums of a loaded
// model, so that the one can be held against the other.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "artifact/artifact_reader.h"
#include "model/forward_batch.h"
#include "nn/compute_context.h"
#include "nn/data_path.h"

namespace pith {

// Bytes by what the weights are for.
struct WeightBytes {
  int64_t attention = 0, mlp = 0, embedding = 0, lm_head = 0;
  int64_t norms = 0;  // and biases
  int64_t total() const { return attention + mlp + embedding + lm_head + norms; }
};

// The part a module belongs to, by its Hugging Face name: "model.layers.3.mlp.up_proj" -> &bytes.mlp.
int64_t& PartOf(absl::string_view module, WeightBytes& bytes);

// Resident bytes after a load with this context. Errors: those of ParseDecoderConfig, MakeWeightMap and DescribeWeight; kUnimplemented when
// no kernel can run a matrix.
absl::StatusOr<WeightBytes> ForecastWeightBytes(const ArtifactReader& reader, const ComputeContext& context);

// Resident bytes of a loaded model: its data path, and norms and biases as what remains of `resident_weight_bytes`.
WeightBytes CountWeightBytes(absl::Span<const TensorDataPath> data_path, int64_t resident_weight_bytes);
// Bytes in the files, by DescribeWeight of every module.
absl::StatusOr<WeightBytes> StoredWeightBytes(const ArtifactReader& reader);

// The buffers of a forward pass of `batch` by a model loaded with this context: DecoderModel::workspace_bytes() when it was the first.
// Rows, sequences and logits_rows count; what the tokens are and where their blocks lie does not. Errors: as above.
absl::StatusOr<int64_t> ForecastWorkspaceBytes(const ArtifactReader& reader, const ComputeContext& context, const ForwardBatch& batch);

}  // namespace pith
