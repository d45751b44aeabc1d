// Metadata of a GGUF file from a model's config.json and vocabulary: the inverse of gguf_config.h and gguf_tokenizer.h.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"
#include "artifact/gguf_architecture.h"
#include "artifact/gguf_writer.h"
#include "base/json.h"

namespace pith {

// Sizes of a decoder as config.json gives them; vocab_size is the number of rows of the embedding.
// Errors: kDataLoss for a missing or absurd value.
absl::StatusOr<GgufSizes> ReadConfigSizes(const Json& config, int64_t vocab_size);

// general.*, the architecture's keys, tokenizer.*. `tokenizer`: in the terms of GGUF; a vocabulary shorter than the embedding is filled up
// with unused tokens. `file_type`: general.file_type.
// Errors: kUnimplemented for a kind of rope_scaling that GGUF metadata does not say; kDataLoss for a vocabulary longer than the embedding.
absl::StatusOr<GgufMetadataWriter> MakeExportMetadata(const Json& config, const std::string& name, const GgufArchitecture& architecture,
                                                      const GgufSizes& sizes, const TokenizerFiles& tokenizer, uint32_t file_type);

// The tensor rope_freqs.weight of llama3 rope_scaling, [head_dim / 2]; empty for any other.
absl::StatusOr<std::vector<float>> MakeRopeFrequencies(const Json& config, int64_t head_dim);

}  // namespace pith
