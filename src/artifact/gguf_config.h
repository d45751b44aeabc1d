// config.json and generation_config.json as Hugging Face would have them, made from the metadata of a GGUF file.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"
#include "artifact/gguf.h"
#include "artifact/gguf_architecture.h"
#include "base/json.h"

namespace pith {

// Every field a decoder needs: model_type, sizes, RoPE (linear, yarn, and llama3 recognized from the rope_freqs.weight tensor), biases
// and tie_word_embeddings from the tensors that are there, token ids. f32 values are given by their shortest decimal form.
// Errors: kDataLoss for absurd values; kUnimplemented for a RoPE scaling that is none of these.
absl::StatusOr<Json> MakeGgufConfig(const GgufFile& file, const GgufArchitecture& architecture, const GgufSizes& sizes,
                                    const TokenizerFiles& tokenizer);

// {"bos_token_id", "eos_token_id", "pad_token_id"}: eos is a list when more than one token ends a text (end of turn, end of message).
absl::StatusOr<Json> MakeGgufGenerationConfig(const GgufMetadata& metadata, const TokenizerFiles& tokenizer);

}  // namespace pith
