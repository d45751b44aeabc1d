#include "tokenizer/tokenizer_definition.h"

#include "absl/container/flat_hash_map.h"
#include "base/status.h"

namespace pith {
namespace {

absl::Status CheckAddedTokens(const TokenizerDefinition& definition) {
  absl::flat_hash_map<absl::string_view, TokenId> ids;
  absl::flat_hash_map<TokenId, absl::string_view> contents;
  for (const AddedToken& token : definition.added_tokens) {
    const std::string name = absl::StrCat("added token '", Printable(token.content), "'");
    if (token.content.empty()) return BadFileError("added token ", token.id, ": expected a content, found ''");
    if (token.id < 0 || token.id > kMaxTokenId) {
      return BadFileError(name, ": expected an id of at most ", kMaxTokenId, ", found ", token.id);
    }
    if (!ids.emplace(token.content, token.id).second) return BadFileError(name, ": expected it once, found it twice");
    if (const auto [other, fresh] = contents.emplace(token.id, token.content); !fresh) {
      return BadFileError(name, ": expected an id of its own, found ", token.id, ", which is '", Printable(other->second), "'");
    }
    const std::optional<TokenId> in_vocabulary = definition.vocabulary.Find(token.content);
    if (in_vocabulary.has_value() && *in_vocabulary != token.id) {
      return BadFileError(name, ": expected id ", *in_vocabulary, " as in the vocabulary, found ", token.id);
    }
    if (!in_vocabulary.has_value() && definition.vocabulary.Has(token.id)) {
      return BadFileError(name, ": expected an id the vocabulary does not use, found ", token.id, ", which is '",
                          Printable(definition.vocabulary.Text(token.id)), "'");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::string_view DefinitionTokenText(const TokenizerDefinition& definition, TokenId id) {
  if (definition.vocabulary.Has(id)) return definition.vocabulary.Text(id);
  for (const AddedToken& token : definition.added_tokens) {
    if (token.id == id) return token.content;
  }
  return {};
}

absl::Status CheckDefinition(const TokenizerDefinition& definition) {
  RETURN_IF_ERROR(CheckAddedTokens(definition));
  const auto check_id = [&](absl::string_view what, TokenId id) {
    if (!DefinitionTokenText(definition, id).empty()) return absl::OkStatus();
    return BadFileError(what, ": expected the id of a token, found ", id);
  };
  if (definition.unk_id.has_value() && !definition.vocabulary.Has(*definition.unk_id)) {
    return BadFileError("unknown token: expected an id of the vocabulary, found ", *definition.unk_id);
  }
  if (definition.bos_id.has_value()) RETURN_IF_ERROR(check_id("beginning-of-text token", *definition.bos_id));
  if (definition.eos_id.has_value()) RETURN_IF_ERROR(check_id("end-of-text token", *definition.eos_id));
  if (definition.pad_id.has_value()) RETURN_IF_ERROR(check_id("padding token", *definition.pad_id));
  for (const TokenId id : definition.prefix_ids) RETURN_IF_ERROR(check_id("post-processor", id));
  for (const TokenId id : definition.suffix_ids) RETURN_IF_ERROR(check_id("post-processor", id));
  return absl::OkStatus();
}

}  // namespace pith
