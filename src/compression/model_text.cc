#include "compression/model_text.h"

#include "base/status.h"
#include "tokenizer/prompt_encoding.h"

namespace pith {

std::optional<TokenId> AddedBos(const Tokenizer& tokenizer) {
  const auto probe = tokenizer.Encode("a");
  const bool added = probe.ok() && tokenizer.bos_id().has_value() && !probe->empty() && probe->front() == *tokenizer.bos_id();
  return added ? tokenizer.bos_id() : std::nullopt;
}

absl::StatusOr<std::vector<TokenId>> EncodeText(const ModelText& model_text, absl::string_view text) {
  auto ids = model_text.tokenizer.Encode(text, {.add_special_tokens = false});
  if (ids.ok()) return ids;
  return BadFileError(ids.status().message());  // the tokenizer blames its caller; here a file is to blame
}

absl::StatusOr<std::vector<TokenId>> EncodeConversation(const ModelText& model_text, const OrderedJson& messages,
                                                        bool add_generation_prompt) {
  if (model_text.chat_template == nullptr) return NotSupportedError("messages: expected a model with a chat template, found none");
  const ChatTemplateInputs inputs{.messages = messages,
                                  .add_generation_prompt = add_generation_prompt,
                                  .bos_token = model_text.bos_token,
                                  .eos_token = model_text.eos_token,
                                  .now_unix_seconds = kCalibrationUnixSeconds};
  auto ids = EncodeChat(model_text.tokenizer, *model_text.chat_template, inputs);
  if (ids.ok()) return ids;
  return BadFileError("chat template: ", ids.status().message());
}

}  // namespace pith
