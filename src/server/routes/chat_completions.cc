#include <ctime>

#include "base/status.h"
#include "server/api_error.h"
#include "server/generation_session.h"
#include "server/openai_types.h"
#include "server/route.h"
#include "tokenizer/prompt_encoding.h"

namespace pith {
namespace {

absl::Status ServeChat(const ServerContext& context, const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
  if (context.model.chat_template == nullptr) {
    return NotSupportedError("this model has no chat template: use /v1/completions");
  }
  ASSIGN_OR_RETURN(const ChatRequest chat, ParseChatRequest(request.body, context.model.vocab_size));
  RETURN_IF_ERROR(CheckModelName(context.model, chat.options.model));
  ChatTemplateInputs inputs{.messages = chat.messages, .bos_token = context.model.bos_token, .eos_token = context.model.eos_token};
  inputs.now_unix_seconds = static_cast<int64_t>(std::time(nullptr));
  auto tokens = EncodeChat(*context.model.tokenizer, *context.model.chat_template, inputs);
  if (!tokens.ok()) return FieldError("messages", tokens.status().message());
  auto session = std::make_shared<GenerationSession>(context, ResponseKind::kChat, chat.options, /*echo=*/false, request.id, responder);
  std::vector<SessionPrompt> prompts(1);
  prompts[0].tokens = *std::move(tokens);
  return session->Start(std::move(prompts));
}

}  // namespace

void HandleChatCompletions(const ServerContext& context, const HttpRequest& request, std::shared_ptr<Responder> responder) {
  const absl::Status status = ServeChat(context, request, responder);
  if (!status.ok()) responder->Send(ToResponse(ToApiError(status)));
}

}  // namespace pith
