// The vocabulary a GGUF file carries, as TokenizerFiles; checked for what the tokenizer module relies on.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"
#include "artifact/gguf_metadata.h"

namespace pith {

// Empty files when the metadata has no tokenizer. `vocab_size`: rows of the embedding; the vocabulary must not be larger.
// Checked: arrays of one length, token types 0 to 6, byte tokens of the form <0xHH>, merges of two parts, ids within the vocabulary
// (0xFFFFFFFF stands for none). Errors: kDataLoss naming the key.
absl::StatusOr<TokenizerFiles> ReadGgufTokenizer(const GgufMetadata& metadata, int64_t vocab_size);

}  // namespace pith
