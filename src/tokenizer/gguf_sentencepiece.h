// SentencePiece BPE between its two forms: GGUF gives every token a score, tokenizer.json a list of merges.
//
// SentencePiece joins the two neighbours whose concatenation is the token with the best score. As merges that is: every split of a token
// into two tokens, those of the token with the best score first; of equal scores the split with the longer left part first (the rule of
// transformers' converter; older versions order the splits of one token by id). Which split of one token comes first shows only where they
// overlap, in runs of one character; llama.cpp takes the leftmost there.
// Sources: llama.cpp's tokenizer of model "llama"; transformers convert_slow_tokenizer.py; docs/formats/tokenizer_json.md.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_definition.h"

namespace pith {

// Types of tokens in GGUF metadata (tokenizer.ggml.token_type).
enum GgufTokenType : int32_t {
  kNormalToken = 1,
  kUnknownToken = 2,
  kControlToken = 3,
  kUserDefinedToken = 4,
  kUnusedToken = 5,
  kByteToken = 6,
};

inline constexpr char kMetaspaceText[] = "\xE2\x96\x81";  // U+2581, which stands for a space

// Whether a token is made of others by merging and may be a part of them: bytes, special and added tokens are not.
using IsNormalToken = absl::FunctionRef<bool(TokenId)>;

// Every split of a normal token into two normal tokens, in the order above; tokens of one score by id. `scores`: one per id of
// `vocabulary`, finite.
std::vector<BpeMerge> MergesFromScores(const Vocabulary& vocabulary, absl::Span<const float> scores, IsNormalToken is_normal);

// Scores that give these merges back, but for the order of the splits of one token: whole numbers from 0 down, equal where the merges of
// several tokens alternate; normal tokens that no merge makes, and all others, come last. Errors: kUnimplemented for merges that no scores
// give (a split is missing, or a token's splits are torn apart), with the first that is out of place.
absl::StatusOr<std::vector<float>> ScoresFromMerges(const Vocabulary& vocabulary, absl::Span<const BpeMerge> merges,
                                                    IsNormalToken is_normal);

// Whether a definition is of this kind: BPE whose unknown characters become byte tokens.
bool IsSentencePiece(const TokenizerDefinition& definition);

// How such tokens become text; `strips_space`: the text loses the space that was put before it.
std::vector<DecoderStep> SentencePieceDecoder(bool strips_space);

// Makes `gguf`, which has a token for each id and its type (normal, control, user-defined, unused), one of the model "llama": scores, the
// types of bytes and of the unknown token, add_space_prefix. Runs of U+2581 that are added tokens are written as the spaces they stand for.
// Noted in the log where GGUF can only come near: Metaspace. Errors: kUnimplemented for a normalizer, pre-tokenizer or decoder other than
// SentencePiece's, a vocabulary without one of the 256 bytes, and those of ScoresFromMerges.
absl::Status AddSentencePiece(const TokenizerDefinition& definition, GgufVocabulary& gguf);

}  // namespace pith
