// One HTTP generation request from submission to its last byte: several choices (n, several prompts) run as engine requests, and their
// tokens become one JSON body or one SSE stream. Lives until its choices have ended, held by the engine's callbacks.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/api_error.h"
#include "server/http_types.h"
#include "server/openai_types.h"
#include "server/response_format.h"
#include "server/server_context.h"
#include "tokenizer/text_generation.h"

namespace pith {

struct SessionPrompt {
  std::vector<int32_t> tokens;
  std::string text;  // for echo
};

class GenerationSession : public std::enable_shared_from_this<GenerationSession> {
 public:
  // `context` and what it points to outlive the session. echo is for completions only.
  GenerationSession(const ServerContext& context, ResponseKind kind, GenerationOptions options, bool echo, std::string request_id,
                    std::shared_ptr<Responder> responder);

  // Submits prompts.size() * n engine requests. On an error nothing runs, and the caller answers it. Call once.
  absl::Status Start(std::vector<SessionPrompt> prompts);

 private:
  struct Choice {
    int64_t index = 0;
    RequestId id = 0;
    SessionPrompt prompt;
    std::unique_ptr<TextGeneration> generation;
    std::string text;                  // shown so far, without an echoed prompt
    std::vector<SampleResult> tokens;  // shown, with logprobs; not kept when streaming
    std::vector<SampleResult> prompt_logprobs;
    int64_t completion_tokens = 0;  // the stop token included
    int64_t text_bytes = 0;         // of the tokens reported so far, for text_offset
    bool opened = false;            // streaming: its first chunk is out
    FinishReason finish = FinishReason::kNone;
    std::chrono::steady_clock::time_point last_token;
  };

  Request MakeRequest(const SessionPrompt& prompt, int64_t index) const;
  // On the output worker, with mutex_ held.
  void HandleGuarded(Choice& choice, RequestOutput output);
  void Handle(Choice& choice, RequestOutput output);
  void AddTokens(Choice& choice, RequestOutput& output);
  void EndChoice(Choice& choice, FinishReason finish);
  void StreamTokens(Choice& choice, const std::string& text, std::vector<SampleResult> tokens);
  void OpenChoice(Choice& choice);
  void SendFrame(OrderedJson json);
  void SendChunk(OrderedJson choice) { SendFrame(ChunkJson(header_, OrderedJson::array({std::move(choice)}))); }
  void FinishResponse();
  void FailResponse(const ApiError& error);
  void AbortAll();
  // Logprobs of tokens, of the whole prompt before them when echoed; null when not asked for.
  OrderedJson TokensJson(Choice& choice, std::vector<SampleResult> tokens, bool with_prompt);
  void ObserveLatency(Choice& choice, size_t num_tokens);

  const ServerContext& context_;
  const GenerationOptions options_;  // with a seed
  const bool echo_;
  const ResponseHeader header_;
  const std::shared_ptr<Responder> responder_;
  const std::chrono::steady_clock::time_point start_;
  std::mutex mutex_;
  std::vector<Choice> choices_;
  size_t unfinished_ = 0;
  int64_t prompt_tokens_ = 0;  // of every prompt once
  bool stream_begun_ = false;
  bool dead_ = false;  // failed, or the client is gone: outputs are dropped
};

}  // namespace pith
