// The Tokenizer that runs a TokenizerDefinition. Thread-safe after creation.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/decoder.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_definition.h"

namespace pith {

class BpeTokenizer final : public Tokenizer {
 public:
  // `definition` must have passed CheckDefinition. Errors: as SplitPattern::Create.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(TokenizerDefinition definition);

  absl::StatusOr<std::vector<TokenId>> Encode(absl::string_view text, const EncodeOptions& options) const override;
  std::string Decode(const std::vector<TokenId>& ids, bool skip_special) const override;
  std::string TokenBytes(TokenId id) const override;
  int64_t vocab_size() const override { return vocab_size_; }
  bool IsSpecial(TokenId id) const override;
  std::optional<TokenId> FindToken(absl::string_view token) const override;
  std::string TokenText(TokenId id) const override;
  std::optional<TokenId> bos_id() const override { return definition_.bos_id; }
  std::optional<TokenId> eos_id() const override { return definition_.eos_id; }
  bool strips_leading_space() const override { return decoder_.strips_leading_space(); }

 private:
  struct AddedEntry {
    const AddedToken* token = nullptr;
    std::string decoded;  // what the decoder is given: the content, normalized if the token is
  };

  explicit BpeTokenizer(TokenizerDefinition definition) : definition_(std::move(definition)) {}
  absl::Status Build();
  absl::Status EncodeText(absl::string_view text, bool at_text_start, bool parse_special, std::vector<TokenId>* ids) const;
  // The token text the decoder is given; nullopt for unknown ids.
  std::optional<absl::string_view> DecoderInput(TokenId id) const;

  const TokenizerDefinition definition_;
  int64_t vocab_size_ = 0;
  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  Decoder decoder_;
  std::unique_ptr<BpeModel> model_;
  AddedTokenMatcher raw_matcher_, normalized_matcher_;  // tokens found before and after normalization
  absl::flat_hash_map<TokenId, AddedEntry> added_by_id_;
  absl::flat_hash_map<absl::string_view, TokenId> added_by_text_;
};

}  // namespace pith
