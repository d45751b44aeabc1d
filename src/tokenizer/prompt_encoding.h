// From messages to the ids of a prompt: the chat template is rendered, and special tokens are recognized only where the template itself
// wrote them. Everything else is encoded as one text, so that ids are those of the plain rendering for well-meant messages.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace pith {

// Ids of rendered pieces, without BOS or EOS added: templates write their own.
absl::StatusOr<std::vector<TokenId>> EncodePieces(const Tokenizer& tokenizer, absl::Span<const RenderedPiece> pieces);

// Errors: those of ChatTemplate::RenderPieces; kInvalidArgument when a message is not UTF-8.
absl::StatusOr<std::vector<TokenId>> EncodeChat(const Tokenizer& tokenizer, const ChatTemplate& chat_template,
                                                const ChatTemplateInputs& inputs);

}  // namespace pith
