#include "tokenizer/bpe_tokenizer.h"

#include <algorithm>

#include "base/status.h"
#include "tokenizer/utf8.h"

namespace pith {

absl::StatusOr<std::unique_ptr<Tokenizer>> BpeTokenizer::Create(TokenizerDefinition definition) {
  std::unique_ptr<BpeTokenizer> tokenizer(new BpeTokenizer(std::move(definition)));
  RETURN_IF_ERROR(tokenizer->Build());
  return tokenizer;
}

absl::Status BpeTokenizer::Build() {
  // Words can stay bytes when nothing works on byte-level text after the alphabet is applied and no byte needs a substitute.
  const std::vector<PreTokenizerStep>& steps = definition_.pre_tokenizer;
  const auto is_byte_level = [](const PreTokenizerStep& step) { return step.kind == PreTokenizerStep::kByteLevel; };
  const bool raw_bytes = std::count_if(steps.begin(), steps.end(), is_byte_level) == 1 && is_byte_level(steps.back()) &&
                         BpeModel::HasWholeByteAlphabet(definition_.vocabulary);
  ASSIGN_OR_RETURN(normalizer_, Normalizer::Create(definition_.normalizer));
  ASSIGN_OR_RETURN(pre_tokenizer_, PreTokenizer::Create(steps, raw_bytes));
  ASSIGN_OR_RETURN(decoder_, Decoder::Create(definition_.decoder));
  model_ = std::make_unique<BpeModel>(definition_, raw_bytes);

  vocab_size_ = definition_.vocabulary.end_id();
  std::vector<AddedToken> raw_tokens, normalized_tokens;
  std::vector<std::string> raw_contents, normalized_contents;
  for (const AddedToken& token : definition_.added_tokens) {
    vocab_size_ = std::max<int64_t>(vocab_size_, int64_t{token.id} + 1);
    AddedEntry entry = {&token, token.content};
    if (token.normalized) RETURN_IF_ERROR(normalizer_.Normalize(&entry.decoded));
    (token.normalized ? normalized_tokens : raw_tokens).push_back(token);
    (token.normalized ? normalized_contents : raw_contents).push_back(entry.decoded);
    added_by_text_.emplace(token.content, token.id);
    added_by_id_.emplace(token.id, std::move(entry));
  }
  raw_matcher_ = AddedTokenMatcher(std::move(raw_tokens), raw_contents);
  normalized_matcher_ = AddedTokenMatcher(std::move(normalized_tokens), normalized_contents);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<TokenId>> BpeTokenizer::Encode(absl::string_view text, const EncodeOptions& options) const {
  if (!IsValidUtf8(text)) return UsageError("text: expected UTF-8, found '", Printable(text), "'");
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 3 + 8);
  if (options.add_special_tokens) ids = definition_.prefix_ids;
  size_t next_range = 0;
  for (const TextSegment& segment : raw_matcher_.Split(text, options.parse_special, options.user_text)) {
    if (segment.id >= 0) {
      ids.push_back(segment.id);
      continue;
    }
    const absl::string_view part = text.substr(segment.begin, segment.end - segment.begin);
    // Normalization moves bytes, so a part with any user text in it keeps all its special tokens as text.
    const bool users = TouchesRange(options.user_text, segment.begin, segment.end, &next_range);
    RETURN_IF_ERROR(EncodeText(part, segment.begin == 0, options.parse_special && !users, &ids));
  }
  if (options.add_special_tokens) ids.insert(ids.end(), definition_.suffix_ids.begin(), definition_.suffix_ids.end());
  return ids;
}

absl::Status BpeTokenizer::EncodeText(absl::string_view text, bool at_text_start, bool parse_special, std::vector<TokenId>* ids) const {
  const auto encode_word = [&](absl::string_view word) { model_->EncodeWord(word, ids); };
  std::string normalized;
  if (!normalizer_.empty()) {
    normalized = std::string(text);
    RETURN_IF_ERROR(normalizer_.Normalize(&normalized));
    text = normalized;
  }
  if (normalized_matcher_.empty()) return pre_tokenizer_.Split(text, at_text_start, encode_word);
  for (const TextSegment& segment : normalized_matcher_.Split(text, parse_special)) {
    if (segment.id >= 0) {
      ids->push_back(segment.id);
      continue;
    }
    const absl::string_view part = text.substr(segment.begin, segment.end - segment.begin);
    RETURN_IF_ERROR(pre_tokenizer_.Split(part, at_text_start && segment.begin == 0, encode_word));
  }
  return absl::OkStatus();
}

std::optional<absl::string_view> BpeTokenizer::DecoderInput(TokenId id) const {
  if (const auto added = added_by_id_.find(id); added != added_by_id_.end()) return added->second.decoded;
  if (definition_.vocabulary.Has(id)) return definition_.vocabulary.Text(id);
  return std::nullopt;
}

std::string BpeTokenizer::Decode(const std::vector<TokenId>& ids, bool skip_special) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const TokenId id : ids) {
    if (skip_special && IsSpecial(id)) continue;
    if (const std::optional<absl::string_view> token = DecoderInput(id); token.has_value()) tokens.emplace_back(*token);
  }
  return decoder_.Decode(std::move(tokens));
}

std::string BpeTokenizer::TokenBytes(TokenId id) const {
  if (IsSpecial(id)) return "";
  const std::optional<absl::string_view> token = DecoderInput(id);
  return token.has_value() ? decoder_.TokenBytes(*token) : "";
}

bool BpeTokenizer::IsSpecial(TokenId id) const {
  const auto added = added_by_id_.find(id);
  return added != added_by_id_.end() && added->second.token->special;
}

std::optional<TokenId> BpeTokenizer::FindToken(absl::string_view token) const {
  if (const auto added = added_by_text_.find(token); added != added_by_text_.end()) return added->second;
  return definition_.vocabulary.Find(token);
}

std::string BpeTokenizer::TokenText(TokenId id) const {
  if (const auto added = added_by_id_.find(id); added != added_by_id_.end()) return added->second.token->content;
  return std::string(definition_.vocabulary.Text(id));
}

}  // namespace pith
