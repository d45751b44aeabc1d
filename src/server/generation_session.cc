#include "server/generation_session.h"

#include <ctime>
#include <random>
#include <utility>

#include "base/status.h"

namespace pith {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsBetween(Clock::time_point begin, Clock::time_point end) { return std::chrono::duration<double>(end - begin).count(); }

uint64_t DrawSeed() {
  static thread_local std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

const char* FinishedReason(FinishReason reason) {
  switch (reason) {
    case FinishReason::kLength: return "length";
    case FinishReason::kStop: return "stop";
    case FinishReason::kError: return "error";
    default: return "abort";
  }
}

GenerationOptions WithSeed(GenerationOptions options) {
  if (!options.seed.has_value()) options.seed = DrawSeed();
  return options;
}

}  // namespace

GenerationSession::GenerationSession(const ServerContext& context, ResponseKind kind, GenerationOptions options, bool echo,
                                     std::string request_id, std::shared_ptr<Responder> responder)
    : context_(context),
      options_(WithSeed(std::move(options))),
      echo_(echo),
      header_{.kind = kind,
              .id = absl::StrCat(kind == ResponseKind::kChat ? "chatcmpl-" : "cmpl-", request_id),
              .created_unix_seconds = static_cast<int64_t>(std::time(nullptr)),
              .model = context.model.name,
              .fingerprint = context.model.fingerprint},
      responder_(std::move(responder)),
      start_(Clock::now()) {}

Request GenerationSession::MakeRequest(const SessionPrompt& prompt, int64_t index) const {
  Request request;
  request.prompt = prompt.tokens;
  request.sampling = options_.sampling;
  // Choices of one prompt differ by their seed alone, so each can be had again by itself.
  request.sampling.seed = *options_.seed + static_cast<uint64_t>(index % options_.n);
  const int64_t room = context_.bridge->config().max_model_len - static_cast<int64_t>(prompt.tokens.size());
  request.max_tokens = options_.max_tokens.value_or(std::max<int64_t>(1, room));
  request.stop_token_ids = context_.model.stop_token_ids;
  request.prompt_logprobs = echo_ && options_.sampling.logprobs >= 0;
  return request;
}

absl::Status GenerationSession::Start(std::vector<SessionPrompt> prompts) {
  const std::lock_guard lock(mutex_);
  for (const SessionPrompt& prompt : prompts) {
    prompt_tokens_ += static_cast<int64_t>(prompt.tokens.size());
    for (int64_t i = 0; i < options_.n; ++i) {
      Choice& choice = choices_.emplace_back();
      choice.index = static_cast<int64_t>(choices_.size()) - 1;
      choice.prompt = prompt;
      choice.generation = std::make_unique<TextGeneration>(*context_.model.tokenizer, options_.stop);
    }
  }
  unfinished_ = choices_.size();
  const auto self = shared_from_this();
  std::vector<EngineBridge::Submission> submissions;
  for (size_t i = 0; i < choices_.size(); ++i) {
    submissions.push_back({.request = MakeRequest(choices_[i].prompt, choices_[i].index), .on_output = [self, i](RequestOutput output) {
                             self->context_.worker->Post([self, i, output = std::move(output)]() mutable {
                               const std::lock_guard worker_lock(self->mutex_);
                               self->HandleGuarded(self->choices_[i], std::move(output));
                             });
                           }});
  }
  ASSIGN_OR_RETURN(const std::vector<RequestId> ids, context_.bridge->Submit(std::move(submissions)));
  for (size_t i = 0; i < ids.size(); ++i) choices_[i].id = ids[i];
  responder_->OnDisconnect([weak = weak_from_this(), worker = context_.worker] {
    worker->Post([weak] {
      const auto session = weak.lock();
      if (session == nullptr) return;
      const std::lock_guard worker_lock(session->mutex_);
      session->AbortAll();
    });
  });
  return absl::OkStatus();
}

void GenerationSession::AbortAll() {
  dead_ = true;
  for (const Choice& choice : choices_) {
    if (choice.finish == FinishReason::kNone) context_.bridge->Abort(choice.id);
  }
}

// Without memory for an answer, the request ends instead of hanging.
void GenerationSession::HandleGuarded(Choice& choice, RequestOutput output) {
  try {
    Handle(choice, std::move(output));
  } catch (const std::bad_alloc&) {
    if (!dead_) FailResponse(MakeApiError(503, "out of memory"));
  }
}

void GenerationSession::Handle(Choice& choice, RequestOutput output) {
  if (choice.finish != FinishReason::kNone) return;  // a stop string ended it while the engine was still at work
  if (dead_) {
    if (output.finish != FinishReason::kNone) EndChoice(choice, FinishReason::kAborted);
    return;
  }
  if (output.finish == FinishReason::kError || output.finish == FinishReason::kAborted) {
    EndChoice(choice, output.finish);
    const bool aborted = output.finish == FinishReason::kAborted;
    return FailResponse(aborted ? MakeApiError(503, "the server is shutting down") : ToApiError(BugError(output.error)));
  }
  AddTokens(choice, output);
  if (dead_) return;
  if (choice.generation->stopped()) {
    if (output.finish == FinishReason::kNone) context_.bridge->Abort(choice.id);
    output.finish = FinishReason::kStop;
  }
  if (output.finish == FinishReason::kNone) return;
  EndChoice(choice, output.finish);
  if (unfinished_ == 0 && !dead_) FinishResponse();
}

void GenerationSession::AddTokens(Choice& choice, RequestOutput& output) {
  ObserveLatency(choice, output.tokens.size());
  for (SampleResult& sample : output.prompt_logprobs) choice.prompt_logprobs.push_back(std::move(sample));
  std::string text;
  std::vector<SampleResult> shown;
  for (SampleResult& sample : output.tokens) {
    ++choice.completion_tokens;
    if (sample.token == output.stop_token) continue;
    text += choice.generation->Append(sample.token);
    shown.push_back(std::move(sample));
    if (choice.generation->stopped()) break;
  }
  if (output.finish != FinishReason::kNone) text += choice.generation->Finish();
  choice.text += text;
  if (options_.stream) return StreamTokens(choice, text, std::move(shown));
  for (SampleResult& sample : shown) choice.tokens.push_back(std::move(sample));
}

void GenerationSession::ObserveLatency(Choice& choice, size_t num_tokens) {
  if (num_tokens == 0) return;
  const Clock::time_point now = Clock::now();
  if (choice.completion_tokens == 0) {
    context_.metrics->time_to_first_token_seconds.Observe(SecondsBetween(start_, now));
  } else {
    const double each = SecondsBetween(choice.last_token, now) / static_cast<double>(num_tokens);
    for (size_t i = 0; i < num_tokens; ++i) context_.metrics->inter_token_latency_seconds.Observe(each);
  }
  choice.last_token = now;
}

void GenerationSession::EndChoice(Choice& choice, FinishReason finish) {
  choice.finish = finish;
  --unfinished_;
  context_.metrics->CountFinished(FinishedReason(finish));
  context_.metrics->e2e_request_latency_seconds.Observe(SecondsBetween(start_, Clock::now()));
  context_.metrics->request_prompt_tokens.Observe(static_cast<double>(choice.prompt.tokens.size()));
  context_.metrics->request_generation_tokens.Observe(static_cast<double>(choice.completion_tokens));
  if (options_.stream && !dead_ && finish != FinishReason::kError && finish != FinishReason::kAborted) {
    OpenChoice(choice);
    SendChunk(ChunkChoiceJson(header_.kind, choice.index, "", nullptr, finish, /*role=*/false));
  }
}

OrderedJson GenerationSession::TokensJson(Choice& choice, std::vector<SampleResult> tokens, bool with_prompt) {
  if (options_.sampling.logprobs < 0) return nullptr;
  LogprobTokens list{.as_ids = options_.tokens_as_ids};
  if (with_prompt) {
    list.first_has_logprob = false;
    list.tokens.push_back({.token = choice.prompt.tokens.front()});
    for (SampleResult& sample : choice.prompt_logprobs) list.tokens.push_back(std::move(sample));
  }
  for (SampleResult& sample : tokens) list.tokens.push_back(std::move(sample));
  for (const SampleResult& sample : list.tokens) {
    list.text_offsets.push_back(choice.text_bytes);
    choice.text_bytes += static_cast<int64_t>(context_.model.tokenizer->TokenBytes(sample.token).size());
  }
  return LogprobsJson(header_.kind, list, *context_.model.tokenizer);
}

void GenerationSession::SendFrame(OrderedJson json) {
  if (dead_) return;
  if (!stream_begun_) {
    stream_begun_ = true;
    responder_->BeginStream({.content_type = "text/event-stream; charset=utf-8", .headers = {{"Cache-Control", "no-cache"}}});
  }
  if (options_.include_usage && !json.contains("usage") && !json.contains("error")) json["usage"] = nullptr;
  if (!responder_->Write(SseFrame(json))) AbortAll();
}

void GenerationSession::OpenChoice(Choice& choice) {
  if (std::exchange(choice.opened, true)) return;
  if (header_.kind == ResponseKind::kChat)
    return SendChunk(ChunkChoiceJson(header_.kind, choice.index, "", nullptr, FinishReason::kNone, /*role=*/true));
  if (echo_) {
    OrderedJson logprobs = TokensJson(choice, {}, /*with_prompt=*/true);
    SendChunk(ChunkChoiceJson(header_.kind, choice.index, choice.prompt.text, std::move(logprobs), FinishReason::kNone, /*role=*/false));
  }
}

void GenerationSession::StreamTokens(Choice& choice, const std::string& text, std::vector<SampleResult> tokens) {
  const bool logprobs = options_.sampling.logprobs >= 0 && !tokens.empty();
  if (text.empty() && !logprobs) return;
  OpenChoice(choice);
  OrderedJson json = logprobs ? TokensJson(choice, std::move(tokens), /*with_prompt=*/false) : OrderedJson(nullptr);
  SendChunk(ChunkChoiceJson(header_.kind, choice.index, text, std::move(json), FinishReason::kNone, /*role=*/false));
}

void GenerationSession::FinishResponse() {
  TokenUsage usage{.prompt_tokens = prompt_tokens_};
  for (const Choice& choice : choices_) usage.completion_tokens += choice.completion_tokens;
  if (options_.stream) {
    if (options_.include_usage) {
      OrderedJson last = ChunkJson(header_, OrderedJson::array());
      last["usage"] = UsageJson(usage);
      SendFrame(std::move(last));
    }
    if (!dead_) responder_->Write(kSseDone);
    return responder_->End();
  }
  OrderedJson list = OrderedJson::array();
  for (Choice& choice : choices_) {
    OrderedJson logprobs = TokensJson(choice, std::move(choice.tokens), echo_);
    list.push_back(
        ChoiceJson(header_.kind, choice.index, (echo_ ? choice.prompt.text : "") + choice.text, std::move(logprobs), choice.finish));
  }
  responder_->Send({.body = DumpJson(ResponseJson(header_, std::move(list), usage))});
}

void GenerationSession::FailResponse(const ApiError& error) {
  if (stream_begun_) {
    SendFrame(ToJson(error));
    if (!dead_) responder_->Write(kSseDone);
    responder_->End();
  } else {
    responder_->Send(ToResponse(error));
  }
  AbortAll();
}

}  // namespace pith
