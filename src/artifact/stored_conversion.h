// A model whose weights are quantized, with the same codes, scales and zero points in another stored format. Nothing is quantized again:
// what the format cannot hold is refused.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "artifact/artifact_reader.h"
#include "artifact/conversion.h"

namespace pith {

// A format to write.
struct StoredTarget {
  absl::string_view name;           // as given on the command line: "gptq_v2", "bnb-int8"
  absl::string_view weight_format;  // of the format table; empty: the one of compressed-tensors that fits each weight
  absl::string_view holds;          // for texts
};

// THE TABLE.
absl::Span<const StoredTarget> StoredTargets();
// Errors: kUnimplemented with the known names.
absl::StatusOr<const StoredTarget*> FindStoredTarget(absl::string_view name);

// Writes `output`, a new directory: config.json with the target's quantization_config (smallest key set), safetensors with the target's
// tensors, everything else as it was (dense tensors and side files byte for byte; those of a GGUF file as BF16), pith.json.
// Errors: kUnimplemented for a model without quantized weights, and for what the target cannot hold, naming the weight (activations,
// minimums, zero points, quantized embeddings, several schemes, scales its type would round); those of ArtifactWriter.
absl::StatusOr<ConversionReport> ConvertStored(const ArtifactReader& reader, const StoredTarget& target, const std::string& output,
                                               const ConversionOptions& options);

}  // namespace pith
