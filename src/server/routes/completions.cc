#include "base/status.h"
#include "server/api_error.h"
#include "server/generation_session.h"
#include "server/openai_types.h"
#include "server/route.h"

namespace pith {
namespace {

absl::StatusOr<std::vector<SessionPrompt>> EncodePrompts(const ServedModel& model, const CompletionRequest& request) {
  std::vector<SessionPrompt> prompts;
  for (const auto& prompt : request.prompts) {
    SessionPrompt encoded;
    if (const auto* text = std::get_if<std::string>(&prompt)) {
      encoded.text = *text;
      auto tokens = model.tokenizer->Encode(*text);
      if (!tokens.ok()) return FieldError("prompt", tokens.status().message());
      encoded.tokens = *std::move(tokens);
    } else {
      encoded.tokens = std::get<std::vector<int32_t>>(prompt);
      encoded.text = model.tokenizer->Decode(encoded.tokens, /*skip_special=*/false);
    }
    prompts.push_back(std::move(encoded));
  }
  return prompts;
}

absl::Status ServeText(const ServerContext& context, const HttpRequest& request, const std::shared_ptr<Responder>& responder) {
  ASSIGN_OR_RETURN(const CompletionRequest completion, ParseCompletionRequest(request.body, context.model.vocab_size));
  RETURN_IF_ERROR(CheckModelName(context.model, completion.options.model));
  ASSIGN_OR_RETURN(std::vector<SessionPrompt> prompts, EncodePrompts(context.model, completion));
  auto session = std::make_shared<GenerationSession>(context, ResponseKind::kCompletion, completion.options, completion.echo, request.id,
                                                     responder);
  return session->Start(std::move(prompts));
}

}  // namespace

void HandleCompletions(const ServerContext& context, const HttpRequest& request, std::shared_ptr<Responder> responder) {
  const absl::Status status = ServeText(context, request, responder);
  if (!status.ok()) responder->Send(ToResponse(ToApiError(status)));
}

}  // namespace pith
