#include "tokenizer/prompt_encoding.h"

#include <string>

#include "base/status.h"

namespace pith {

absl::StatusOr<std::vector<TokenId>> EncodePieces(const Tokenizer& tokenizer, absl::Span<const RenderedPiece> pieces) {
  std::string text;
  std::vector<ByteRange> user_text;
  for (const RenderedPiece& piece : pieces) {
    if (piece.user_text && !piece.text.empty()) user_text.push_back({text.size(), text.size() + piece.text.size()});
    text += piece.text;
  }
  return tokenizer.Encode(text, {.add_special_tokens = false, .parse_special = true, .user_text = user_text});
}

absl::StatusOr<std::vector<TokenId>> EncodeChat(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                                const ChatTemplateInputs& inputs) {
  ASSIGN_OR_RETURN(const std::vector<RenderedPiece> pieces, chat_template.RenderPieces(inputs));
  return EncodePieces(tokenizer, pieces);
}

}  // namespace pith
