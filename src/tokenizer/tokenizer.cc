#include "tokenizer/tokenizer.h"

#include <utility>

#include "base/status.h"
#include "tokenizer/bpe_tokenizer.h"
#include "tokenizer/gguf_vocabulary.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/utf8.h"

namespace pith {

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::FromJson(absl::string_view tokenizer_json, absl::string_view tokenizer_config_json) {
  ASSIGN_OR_RETURN(TokenizerDefinition definition, ReadTokenizerJson(tokenizer_json, tokenizer_config_json));
  absl::StatusOr<std::unique_ptr<Tokenizer>> tokenizer = BpeTokenizer::Create(std::move(definition));
  if (!tokenizer.ok()) return Annotate(tokenizer.status(), "tokenizer.json");
  return tokenizer;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::FromGguf(const GgufVocabulary& vocabulary) {
  ASSIGN_OR_RETURN(TokenizerDefinition definition, DefinitionFromGguf(vocabulary));
  return BpeTokenizer::Create(std::move(definition));
}

absl::StatusOr<TokenizerJsonFiles> TokenizerJsonFromGguf(const GgufVocabulary& vocabulary) {
  ASSIGN_OR_RETURN(const TokenizerDefinition definition, DefinitionFromGguf(vocabulary));
  return WriteTokenizerJson(definition);
}

absl::StatusOr<GgufVocabulary> GgufFromTokenizerJson(absl::string_view tokenizer_json, absl::string_view tokenizer_config_json) {
  ASSIGN_OR_RETURN(const TokenizerDefinition definition, ReadTokenizerJson(tokenizer_json, tokenizer_config_json));
  return GgufFromDefinition(definition);
}

std::string StreamDetokenizer::Append(TokenId id) {
  held_ += tokenizer_->TokenBytes(id);
  if (at_start_ && !held_.empty()) {
    if (tokenizer_->strips_leading_space() && held_[0] == ' ') held_.erase(0, 1);
    at_start_ = false;
  }
  return TakeCompleteUtf8(&held_);
}

std::string StreamDetokenizer::Finish() {
  std::string rest = ReplaceInvalidUtf8(held_);
  held_.clear();
  at_start_ = true;
  return rest;
}

}  // namespace pith
