// Text to token ids and back: byte-level BPE and SentencePiece-style BPE with byte fallback, from tokenizer.json or GGUF metadata.
//
// User text never produces special ids: Encode(text) treats "<|im_end|>" as seven ordinary characters or more, unless
// parse_special is set, which only prompts rendered by our own chat template use, part by part.
// Thread-safe after construction. Encoding is linear in the text for every input, a megabyte of one character included.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace pith {

using TokenId = int32_t;

// The pieces a GGUF file gives; see artifact_reader.h TokenizerFiles (this module knows no container).
struct GgufVocabulary {
  std::string model;  // "gpt2" or "llama"
  std::string pre;
  std::vector<std::string> tokens;
  std::vector<float> scores;  // "llama" only
  std::vector<int32_t> token_types;
  std::vector<std::string> merges;  // "gpt2" only: "a b"
  int64_t bos_id = -1, eos_id = -1, unk_id = -1, pad_id = -1, eot_id = -1;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
  std::string chat_template;
};

struct ByteRange {
  size_t begin = 0, end = 0;
};

struct EncodeOptions {
  bool add_special_tokens = true;  // BOS/EOS as the tokenizer's post-processor or add_bos says
  bool parse_special = false;      // special tokens in the text become their ids
  // With parse_special: what a user wrote, ascending and disjoint. A special token that touches one of these ranges stays ordinary text,
  // which is encoded together with the text around it.
  absl::Span<const ByteRange> user_text = {};
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // tokenizer.json, with tokenizer_config.json (may be empty) for the bos/eos names. The post-processor of tokenizer.json alone decides
  // what add_special_tokens adds, as in the Python tokenizers package; what is read and refused: docs/formats/tokenizer_json.md.
  // Errors: kDataLoss (bad file), kUnimplemented (a model or pre-tokenizer type we do not know, named).
  static absl::StatusOr<std::unique_ptr<Tokenizer>> FromJson(absl::string_view tokenizer_json, absl::string_view tokenizer_config_json);
  static absl::StatusOr<std::unique_ptr<Tokenizer>> FromGguf(const GgufVocabulary& vocabulary);

  // Errors: kInvalidArgument when `text` is not UTF-8, or when a pattern no scanner exists for passes its backtracking limits.
  virtual absl::StatusOr<std::vector<TokenId>> Encode(absl::string_view text, const EncodeOptions& options = {}) const = 0;

  // Text of ids, as HF decode(skip_special_tokens=...) gives it. Unknown ids give nothing. May contain invalid UTF-8 replaced by U+FFFD.
  virtual std::string Decode(const std::vector<TokenId>& ids, bool skip_special = true) const = 0;
  // Raw bytes one token adds in the middle of a text (may be part of a UTF-8 sequence). Empty for special and unknown ids.
  virtual std::string TokenBytes(TokenId id) const = 0;

  virtual int64_t vocab_size() const = 0;  // largest id + 1
  virtual bool IsSpecial(TokenId id) const = 0;
  virtual std::optional<TokenId> FindToken(absl::string_view token) const = 0;  // by its text in the vocabulary
  virtual std::string TokenText(TokenId id) const = 0;                          // its text in the vocabulary ("Ġthe", "<|im_end|>")
  virtual std::optional<TokenId> bos_id() const = 0;
  virtual std::optional<TokenId> eos_id() const = 0;
  // Whether SentencePiece-style decoding drops one leading space of a whole text.
  virtual bool strips_leading_space() const = 0;
};

// tokenizer.json and tokenizer_config.json with the same behaviour as the GGUF vocabulary, for `pith convert`.
struct TokenizerJsonFiles {
  std::string tokenizer_json, tokenizer_config_json;
};
absl::StatusOr<TokenizerJsonFiles> TokenizerJsonFromGguf(const GgufVocabulary& vocabulary);

// The inverse. Errors: those of FromJson; kUnimplemented for anything but byte-level BPE of a family that GGUF has a name for, and
// SentencePiece BPE with byte tokens whose merges are those of a vocabulary with scores.
absl::StatusOr<GgufVocabulary> GgufFromTokenizerJson(absl::string_view tokenizer_json, absl::string_view tokenizer_config_json);

// Turns a stream of ids into pieces of text that are valid UTF-8 on their own: incomplete sequences are held back until complete,
// and replaced by U+FFFD at Finish. Special ids are skipped. Not thread-safe; the tokenizer must outlive it.
class StreamDetokenizer {
 public:
  explicit StreamDetokenizer(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}
  std::string Append(TokenId id);
  std::string Finish();

 private:
  const Tokenizer* tokenizer_;
  std::string held_;
  bool at_start_ = true;
};

}  // namespace pith
