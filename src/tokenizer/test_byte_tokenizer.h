// For tests only: a tokenizer whose ids can be worked out by hand. One token per byte of UTF-8, BOS "<s>" is 256 and EOS "</s>" 257.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace pith {

class ByteTokenizer : public Tokenizer {
 public:
  static constexpr TokenId kBos = 256, kEos = 257;

  explicit ByteTokenizer(bool adds_bos) : adds_bos_(adds_bos) {}

  absl::StatusOr<std::vector<TokenId>> Encode(absl::string_view text, const EncodeOptions& options) const override {
    if (!IsValidUtf8(text)) return absl::InvalidArgumentError("text: expected UTF-8");
    std::vector<TokenId> ids;
    if (adds_bos_ && options.add_special_tokens) ids.push_back(kBos);
    for (size_t i = 0; i < text.size(); ++i) {
      const auto special = [&](absl::string_view name, TokenId id) {
        const bool of_user = std::any_of(options.user_text.begin(), options.user_text.end(),
                                         [&](const ByteRange& range) { return i < range.end && i + name.size() > range.begin; });
        if (!options.parse_special || of_user || !absl::StartsWith(text.substr(i), name)) return false;
        ids.push_back(id);
        i += name.size() - 1;
        return true;
      };
      if (!special("<s>", kBos) && !special("</s>", kEos)) ids.push_back(static_cast<unsigned char>(text[i]));
    }
    return ids;
  }
  std::string Decode(const std::vector<TokenId>& ids, bool) const override {
    std::string text;
    for (const TokenId id : ids) text += TokenText(id);
    return text;
  }
  std::string TokenBytes(TokenId id) const override { return id < kBos ? std::string(1, static_cast<char>(id)) : ""; }
  int64_t vocab_size() const override { return 258; }
  bool IsSpecial(TokenId id) const override { return id >= kBos; }
  std::optional<TokenId> FindToken(absl::string_view) const override { return std::nullopt; }
  std::string TokenText(TokenId id) const override { return id == kBos ? "<s>" : id == kEos ? "</s>" : TokenBytes(id); }
  std::optional<TokenId> bos_id() const override { return kBos; }
  std::optional<TokenId> eos_id() const override { return kEos; }
  bool strips_leading_space() const override { return false; }

 private:
  bool adds_bos_;
};

}  // namespace pith
