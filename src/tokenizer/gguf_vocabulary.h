// The tokenizer a GGUF file's metadata implies, as plain data.
//
// "gpt2": byte-level BPE with merges in the file; the pre-tokenizer goes by its name (`pre`). "llama": SentencePiece BPE with scores; the
// merges are every split of a token into two tokens, the best score first, as Hugging Face converts sentencepiece models.
// Token types: control and unknown tokens are special, user-defined ones are found in any text, unused ones are left out.
// Sources: gguf specification (tokenizer.ggml.*); llama.cpp's defaults for add_bos_token, add_space_prefix and the ids of "llama".
#pragma once

#include "absl/status/statusor.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_definition.h"

namespace pith {

// Errors: kUnimplemented (model or pre-tokenizer name, with those we know), kDataLoss (a token, merge, score, type or id that does not
// fit).
absl::StatusOr<TokenizerDefinition> DefinitionFromGguf(const GgufVocabulary& gguf);

// The inverse. Of byte-level BPE the pre-tokenizer is recognized among those DefinitionFromGguf knows; SentencePiece BPE gets scores that
// give its merges back (gguf_sentencepiece.h). Ids that no token has become unused tokens, so that there is one per id. Errors:
// kUnimplemented for another model, pipeline or post-processor, naming it.
absl::StatusOr<GgufVocabulary> GgufFromDefinition(const TokenizerDefinition& definition);

}  // namespace pith
