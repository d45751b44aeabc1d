// What a tokenizer is, as plain data: the vocabulary, merges and pipeline steps that tokenizer.json writes and GGUF metadata implies.
// Readers make one, BpeTokenizer runs one, the writer prints one; so a GGUF vocabulary and the tokenizer.json made of it cannot differ.
//
// The pipeline is that of the Hugging Face tokenizers library: added tokens are cut out, the rest is normalized, cut into words by the
// pre-tokenizer, and every word is encoded by the model; prefix and suffix ids are what the post-processor adds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"

namespace pith {

struct TextPattern {
  std::string text;
  bool is_regex = false;  // in Oniguruma syntax; otherwise a literal
  bool operator==(const TextPattern&) const = default;
};

struct NormalizerStep {
  enum Kind { kNfc, kNfd, kNfkc, kNfkd, kLowercase, kStrip, kReplace, kPrepend } kind = kNfc;
  TextPattern pattern;                           // kReplace
  std::string content;                           // kReplace, kPrepend
  bool strip_left = false, strip_right = false;  // kStrip
  bool operator==(const NormalizerStep&) const = default;
};

enum class SplitBehavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct PreTokenizerStep {
  enum Kind { kSplit, kByteLevel, kDigits, kMetaspace, kWhitespace, kWhitespaceSplit } kind = kSplit;
  TextPattern pattern;                                         // kSplit
  SplitBehavior behavior = SplitBehavior::kIsolated;           // kSplit
  bool invert = false;                                         // kSplit
  bool add_prefix_space = false, use_regex = true;             // kByteLevel
  bool individual_digits = false;                              // kDigits
  std::string replacement;                                     // kMetaspace, one character
  enum Prepend { kNever, kFirst, kAlways } prepend = kAlways;  // kMetaspace
  bool split = true;                                           // kMetaspace
  bool operator==(const PreTokenizerStep&) const = default;
};

struct DecoderStep {
  enum Kind { kByteLevel, kReplace, kByteFallback, kFuse, kStrip, kMetaspace } kind = kByteLevel;
  TextPattern pattern;          // kReplace
  std::string content;          // kReplace; kStrip and kMetaspace: the one character
  int64_t start = 0, stop = 0;  // kStrip: how many at most
  bool drops_leading = false;   // kMetaspace: the replacement vanishes in the first token
  bool operator==(const DecoderStep&) const = default;
};

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool single_word = false, lstrip = false, rstrip = false, normalized = false, special = false;
};

// Merges in order of rank: `left` followed by `right` becomes `merged`.
struct BpeMerge {
  TokenId left = 0, right = 0, merged = 0;
};

struct TokenizerDefinition {
  Vocabulary vocabulary;  // of the model; added tokens may lie beyond it
  std::vector<BpeMerge> merges;
  bool byte_fallback = false, fuse_unk = false, ignore_merges = false;
  std::optional<TokenId> unk_id;

  std::vector<AddedToken> added_tokens;
  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> pre_tokenizer;
  std::vector<TokenId> prefix_ids, suffix_ids;      // the post-processor
  std::optional<std::vector<DecoderStep>> decoder;  // none: tokens joined by spaces

  std::optional<TokenId> bos_id, eos_id, pad_id;
  std::string chat_template;
};

// Ids that name something exist, no added token contradicts the vocabulary or another one.
// Errors: kDataLoss naming the token. Readers call it last.
absl::Status CheckDefinition(const TokenizerDefinition& definition);

// The text of an id in the vocabulary or among the added tokens; empty when there is none.
absl::string_view DefinitionTokenText(const TokenizerDefinition& definition, TokenId id);

}  // namespace pith
