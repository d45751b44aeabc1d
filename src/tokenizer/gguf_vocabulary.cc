#include "tokenizer/gguf_vocabulary.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_format.h"
#include "base/log.h"
#include "base/status.h"
#include "tokenizer/decoder.h"
#include "tokenizer/gguf_sentencepiece.h"
#include "tokenizer/pretoken_scanner.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

// What a pre-tokenizer name stands for: patterns run one after the other, then the byte-level alphabet.
struct PreTokenizerRow {
  absl::string_view name;
  enum Split { kGpt2, kDigitsGpt2, kLlama3, kQwen2, kDefault } split;
  bool nfc = false;  // as the tokenizer.json of the family says
  bool ignore_merges = false;
  bool add_bos = false;  // when the file does not say
};

constexpr PreTokenizerRow kPreTokenizers[] = {
    {"gpt-2", PreTokenizerRow::kGpt2},
    {"phi-2", PreTokenizerRow::kGpt2},
    {"olmo", PreTokenizerRow::kGpt2},
    {"smollm", PreTokenizerRow::kDigitsGpt2},
    {"starcoder", PreTokenizerRow::kDigitsGpt2},
    {"refact", PreTokenizerRow::kDigitsGpt2},
    {"llama-bpe", PreTokenizerRow::kLlama3, false, true, true},
    {"llama3", PreTokenizerRow::kLlama3, false, true, true},
    {"llama-v3", PreTokenizerRow::kLlama3, false, true, true},
    {"qwen2", PreTokenizerRow::kQwen2, true},
    {"deepseek-r1-qwen", PreTokenizerRow::kQwen2, true},
    {"default", PreTokenizerRow::kDefault},
    {"", PreTokenizerRow::kDefault},
};

absl::StatusOr<PreTokenizerRow> FindPreTokenizer(absl::string_view name) {
  std::string known;
  for (const PreTokenizerRow& row : kPreTokenizers) {
    if (row.name == name) return row;
    if (!row.name.empty()) absl::StrAppend(&known, known.empty() ? "" : ", ", row.name);
  }
  return NotSupportedError("pre: '", Printable(name), "' is not supported (", known, ")");
}

PreTokenizerStep RegexSplit(absl::string_view pattern) {
  PreTokenizerStep step;
  step.pattern = {std::string(pattern), true};
  return step;
}

std::vector<PreTokenizerStep> ByteLevelPreTokenizer(PreTokenizerRow::Split split) {
  std::vector<PreTokenizerStep> steps;
  PreTokenizerStep byte_level;
  byte_level.kind = PreTokenizerStep::kByteLevel;
  byte_level.use_regex = split == PreTokenizerRow::kGpt2 || split == PreTokenizerRow::kDigitsGpt2;
  switch (split) {
    case PreTokenizerRow::kGpt2: break;
    case PreTokenizerRow::kDigitsGpt2: {
      PreTokenizerStep digits;
      digits.kind = PreTokenizerStep::kDigits;
      digits.individual_digits = true;
      steps.push_back(digits);
      break;
    }
    case PreTokenizerRow::kLlama3: steps.push_back(RegexSplit(kLlama3Pattern)); break;
    case PreTokenizerRow::kQwen2: steps.push_back(RegexSplit(kQwen2Pattern)); break;
    case PreTokenizerRow::kDefault:
      steps = {RegexSplit(R"([\p{P}\$\+<=>\^~\|]+)"), RegexSplit(kGpt2Pattern), RegexSplit(R"(\p{N}+)"), RegexSplit("[0-9][0-9][0-9]")};
      break;
  }
  steps.push_back(byte_level);
  return steps;
}

class GgufReader {
 public:
  explicit GgufReader(const GgufVocabulary& gguf)
      : gguf_(gguf), is_sentencepiece_(gguf.model == "llama"), bos_id_(gguf.bos_id), eos_id_(gguf.eos_id), unk_id_(gguf.unk_id) {}

  absl::StatusOr<TokenizerDefinition> Read() {
    RETURN_IF_ERROR(CheckTables());
    if (is_sentencepiece_) ApplyDefaultIds();
    RETURN_IF_ERROR(is_sentencepiece_ ? BuildSentencePiece() : BuildByteLevel());
    definition_.bos_id = ToId(bos_id_);
    definition_.eos_id = ToId(eos_id_);
    definition_.pad_id = ToId(gguf_.pad_id);
    definition_.chat_template = gguf_.chat_template;
    RETURN_IF_ERROR(AddBoundaryIds());
    RETURN_IF_ERROR(CheckDefinition(definition_));
    return std::move(definition_);
  }

 private:
  static std::optional<TokenId> ToId(int64_t id) { return id >= 0 ? std::optional<TokenId>(static_cast<TokenId>(id)) : std::nullopt; }

  int StoredType(size_t id) const { return id < gguf_.token_types.size() ? gguf_.token_types[id] : kNormalToken; }

  // Ids that begin or end a text are special whatever the file calls them: text must not produce them.
  int TypeOf(size_t id) const {
    const int64_t signed_id = static_cast<int64_t>(id);
    return signed_id == bos_id_ || signed_id == eos_id_ || signed_id == gguf_.eot_id ? kControlToken : StoredType(id);
  }

  // Where a SentencePiece file names no ids, <unk>, <s> and </s> are 0, 1 and 2.
  void ApplyDefaultIds() {
    if (unk_id_ < 0 && StoredType(0) == kUnknownToken) unk_id_ = 0;
    if (bos_id_ < 0 && StoredType(1) == kControlToken) bos_id_ = 1;
    if (eos_id_ < 0 && StoredType(2) == kControlToken) eos_id_ = 2;
  }

  absl::Status CheckTables() const;
  absl::Status ReadTokens();
  absl::Status ReadMerges();
  absl::Status BuildByteLevel();
  absl::Status BuildSentencePiece();
  absl::Status AddBoundaryIds();

  const GgufVocabulary& gguf_;
  const bool is_sentencepiece_;
  int64_t bos_id_, eos_id_, unk_id_;
  bool default_add_bos_ = false;
  TokenizerDefinition definition_;
};

absl::Status GgufReader::CheckTables() const {
  const size_t count = gguf_.tokens.size();
  if (count == 0) return BadFileError("tokens: expected at least one, found none");
  if (count > static_cast<size_t>(kMaxTokenId)) return BadFileError("tokens: expected at most ", kMaxTokenId, ", found ", count);
  if (!gguf_.token_types.empty() && gguf_.token_types.size() != count) {
    return BadFileError("token_type: expected ", count, " entries as in tokens, found ", gguf_.token_types.size());
  }
  if (is_sentencepiece_ && gguf_.scores.size() != count) {
    return BadFileError("scores: expected ", count, " entries as in tokens, found ", gguf_.scores.size());
  }
  for (size_t i = 0; is_sentencepiece_ && i < count; ++i) {
    if (!std::isfinite(gguf_.scores[i])) return BadFileError("scores[", i, "]: expected a finite number, found ", gguf_.scores[i]);
  }
  const std::pair<absl::string_view, int64_t> ids[] = {{"bos_token_id", gguf_.bos_id},
                                                       {"eos_token_id", gguf_.eos_id},
                                                       {"unknown_token_id", gguf_.unk_id},
                                                       {"padding_token_id", gguf_.pad_id},
                                                       {"eot_token_id", gguf_.eot_id}};
  for (const auto& [name, id] : ids) {
    if (id < -1 || id >= static_cast<int64_t>(count)) return BadFileError(name, ": expected an id below ", count, ", found ", id);
  }
  return absl::OkStatus();
}

absl::Status GgufReader::ReadTokens() {
  definition_.vocabulary.Reserve(gguf_.tokens.size());
  for (size_t id = 0; id < gguf_.tokens.size(); ++id) {
    const std::string& text = gguf_.tokens[id];
    const int type = TypeOf(id);
    if (type == kUnusedToken) continue;
    if (type < kNormalToken || type > kByteToken) return BadFileError("token_type[", id, "]: expected 1 to 6, found ", type);
    if (text.empty()) return BadFileError("tokens[", id, "]: expected a text, found ''");
    if (!IsValidUtf8(text)) return BadFileError("tokens[", id, "]: expected UTF-8, found '", Printable(text), "'");
    const int byte = ParseByteToken(text);
    if (type == kByteToken && (byte < 0 || absl::StrFormat("<0x%02X>", byte) != text)) {
      return BadFileError("tokens[", id, "]: expected a byte from <0x00> to <0xFF>, found '", Printable(text), "'");
    }
    RETURN_IF_ERROR(Annotate(definition_.vocabulary.Add(text, static_cast<TokenId>(id)), "tokens"));
    if (type != kControlToken && type != kUnknownToken && type != kUserDefinedToken) continue;
    AddedToken token;
    token.id = static_cast<TokenId>(id);
    token.content = text;
    token.special = type != kUserDefinedToken;
    definition_.added_tokens.push_back(std::move(token));
  }
  return absl::OkStatus();
}

absl::Status GgufReader::ReadMerges() {
  const Vocabulary& vocabulary = definition_.vocabulary;
  if (gguf_.merges.empty()) return BadFileError("merges: expected at least one, found none");
  definition_.merges.reserve(gguf_.merges.size());
  std::string merged;
  for (size_t rank = 0; rank < gguf_.merges.size(); ++rank) {
    const absl::string_view merge = gguf_.merges[rank];
    const size_t space = merge.find(' ');
    if (space == absl::string_view::npos || space == 0 || space + 1 == merge.size() ||
        merge.find(' ', space + 1) != absl::string_view::npos) {
      return BadFileError("merges[", rank, "]: expected two texts with a space between, found '", Printable(merge), "'");
    }
    const absl::string_view left = merge.substr(0, space), right = merge.substr(space + 1);
    merged.clear();
    absl::StrAppend(&merged, left, right);
    const std::optional<TokenId> left_id = vocabulary.Find(left), right_id = vocabulary.Find(right), merged_id = vocabulary.Find(merged);
    if (!left_id.has_value() || !right_id.has_value() || !merged_id.has_value()) {
      return BadFileError("merges[", rank, "]: expected tokens in use, found '", Printable(merge), "'");
    }
    definition_.merges.push_back({*left_id, *right_id, *merged_id});
  }
  return absl::OkStatus();
}

absl::Status GgufReader::BuildByteLevel() {
  ASSIGN_OR_RETURN(const PreTokenizerRow row, FindPreTokenizer(gguf_.pre));
  RETURN_IF_ERROR(ReadTokens());
  RETURN_IF_ERROR(ReadMerges());
  if (row.nfc) definition_.normalizer = {NormalizerStep{.kind = NormalizerStep::kNfc}};
  definition_.pre_tokenizer = ByteLevelPreTokenizer(row.split);
  definition_.decoder = std::vector<DecoderStep>{{.kind = DecoderStep::kByteLevel}};
  definition_.ignore_merges = row.ignore_merges;
  default_add_bos_ = row.add_bos;
  return absl::OkStatus();  // no unknown token: byte-level vocabularies know every byte
}

absl::Status GgufReader::BuildSentencePiece() {
  RETURN_IF_ERROR(ReadTokens());
  definition_.merges = MergesFromScores(definition_.vocabulary, gguf_.scores,
                                        [&](TokenId id) { return TypeOf(static_cast<size_t>(id)) == kNormalToken; });
  const bool add_space = gguf_.add_space_prefix.value_or(true);
  if (add_space) definition_.normalizer.push_back({.kind = NormalizerStep::kPrepend, .content = kMetaspaceText});
  definition_.normalizer.push_back({.kind = NormalizerStep::kReplace, .pattern = {" "}, .content = kMetaspaceText});
  definition_.decoder = SentencePieceDecoder(add_space);
  definition_.byte_fallback = definition_.vocabulary.Find("<0x00>").has_value();
  definition_.fuse_unk = true;
  definition_.unk_id = ToId(unk_id_);
  default_add_bos_ = true;
  return absl::OkStatus();
}

absl::Status GgufReader::AddBoundaryIds() {
  if (gguf_.add_bos.value_or(default_add_bos_)) {
    if (!definition_.bos_id.has_value()) return BadFileError("add_bos_token: expected a bos_token_id, found none");
    definition_.prefix_ids.push_back(*definition_.bos_id);
  }
  if (gguf_.add_eos.value_or(false)) {
    if (!definition_.eos_id.has_value()) return BadFileError("add_eos_token: expected an eos_token_id, found none");
    definition_.suffix_ids.push_back(*definition_.eos_id);
  }
  return absl::OkStatus();
}

// The first name whose pipeline is that of the definition.
absl::StatusOr<PreTokenizerRow> RecognizePreTokenizer(const TokenizerDefinition& definition) {
  for (const PreTokenizerRow& row : kPreTokenizers) {
    std::vector<NormalizerStep> normalizer;
    if (row.nfc) normalizer.push_back({.kind = NormalizerStep::kNfc});
    if (definition.normalizer == normalizer && definition.ignore_merges == row.ignore_merges &&
        definition.pre_tokenizer == ByteLevelPreTokenizer(row.split)) {
      return row;
    }
  }
  return NotSupportedError("tokenizer.json: expected the normalizer and pre-tokenizer of a family that GGUF has a name for, found others");
}

absl::StatusOr<bool> AddsBoundary(const std::vector<TokenId>& ids, std::optional<TokenId> id, absl::string_view name) {
  if (ids.empty()) return false;
  if (ids.size() == 1 && id == ids[0]) return true;
  return NotSupportedError("tokenizer.json: post-processor: expected ", name, " or nothing, found ", ids.size(), " other tokens");
}

bool IsByteLevel(const TokenizerDefinition& definition) {
  return definition.decoder == std::vector<DecoderStep>{{.kind = DecoderStep::kByteLevel}} && !definition.byte_fallback;
}

// One token per id, unused ones between.
void AppendTokens(const TokenizerDefinition& definition, GgufVocabulary& gguf) {
  TokenId end = definition.vocabulary.end_id();
  for (const AddedToken& token : definition.added_tokens) end = std::max(end, token.id + 1);
  for (TokenId id = 0; id < end; ++id) {
    const absl::string_view text = DefinitionTokenText(definition, id);
    gguf.tokens.push_back(text.empty() ? absl::StrCat("[PAD", id, "]") : std::string(text));
    gguf.token_types.push_back(text.empty() ? kUnusedToken : kNormalToken);
  }
  for (const AddedToken& token : definition.added_tokens) {
    gguf.token_types[static_cast<size_t>(token.id)] = token.special ? kControlToken : kUserDefinedToken;
  }
}

// Flags of added tokens that metadata has no place for.
void NoteFlags(const TokenizerDefinition& definition) {
  for (const AddedToken& token : definition.added_tokens) {
    if (!token.lstrip && !token.rstrip && !token.single_word) continue;
    spdlog::warn("tokenizer.json: lstrip, rstrip and single_word of added tokens have no place in a GGUF file: \"{}\" loses them",
                 Printable(token.content));
  }
}

absl::Status AddByteLevel(const TokenizerDefinition& definition, GgufVocabulary& gguf) {
  ASSIGN_OR_RETURN(const PreTokenizerRow row, RecognizePreTokenizer(definition));
  gguf.model = "gpt2";
  gguf.pre = std::string(row.name);
  for (const BpeMerge& merge : definition.merges) {
    gguf.merges.push_back(absl::StrCat(definition.vocabulary.Text(merge.left), " ", definition.vocabulary.Text(merge.right)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TokenizerDefinition> DefinitionFromGguf(const GgufVocabulary& gguf) {
  if (gguf.model != "gpt2" && gguf.model != "llama") {
    return NotSupportedError("tokenizer.ggml.model: '", Printable(gguf.model), "' is not supported (gpt2, llama)");
  }
  absl::StatusOr<TokenizerDefinition> definition = GgufReader(gguf).Read();
  if (!definition.ok()) return Annotate(definition.status(), "tokenizer.ggml");
  return definition;
}

absl::StatusOr<GgufVocabulary> GgufFromDefinition(const TokenizerDefinition& definition) {
  GgufVocabulary gguf{.chat_template = definition.chat_template};
  AppendTokens(definition, gguf);
  NoteFlags(definition);
  if (IsSentencePiece(definition)) {
    RETURN_IF_ERROR(AddSentencePiece(definition, gguf));
  } else if (IsByteLevel(definition)) {
    RETURN_IF_ERROR(AddByteLevel(definition, gguf));
  } else {
    return NotSupportedError("tokenizer.json: expected byte-level BPE, or BPE with byte fallback, for a GGUF file, found another model");
  }
  gguf.bos_id = definition.bos_id.value_or(-1);
  gguf.eos_id = definition.eos_id.value_or(-1);
  gguf.pad_id = definition.pad_id.value_or(-1);
  gguf.unk_id = definition.unk_id.value_or(-1);
  ASSIGN_OR_RETURN(gguf.add_bos, AddsBoundary(definition.prefix_ids, definition.bos_id, "the bos token"));
  ASSIGN_OR_RETURN(const bool add_eos, AddsBoundary(definition.suffix_ids, definition.eos_id, "the eos token"));
  if (add_eos) gguf.add_eos = true;
  return gguf;
}

}  // namespace pith
