// The bodies of /v1/completions and /v1/chat/completions, checked field by field. Source: OpenAI API reference; vLLM for top_k, min_p,
// repetition_penalty, min_tokens, ignore_eos. Limits are in docs/http_api.md. Unknown fields are ignored; null counts as absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "base/json.h"
#include "sampling/sampling_params.h"

namespace pith {

constexpr int64_t kMaxChoices = 16;  // n
constexpr size_t kMaxStopStrings = 16;
constexpr size_t kMaxStopBytes = 256;  // of one stop string
constexpr size_t kMaxMessages = 4096;
constexpr size_t kMaxLogitBias = 1024;
constexpr size_t kMaxPrompts = 64;  // of one completions request

// What both endpoints share.
struct GenerationOptions {
  std::string model;  // empty: whichever is served
  SamplingParams sampling;
  std::optional<uint64_t> seed;       // absent: one is drawn per request
  std::optional<int64_t> max_tokens;  // absent: 16 for completions, the rest of the context for chat
  int64_t n = 1;
  std::vector<std::string> stop;  // not empty, at most kMaxStopBytes each
  bool stream = false, include_usage = false;
  bool tokens_as_ids = false;  // return_tokens_as_token_ids: logprobs name tokens "token_id:17" instead of their text
};

struct CompletionRequest {
  GenerationOptions options;
  std::vector<std::variant<std::string, std::vector<int32_t>>> prompts;  // text or token ids; at least one
  bool echo = false;
};

struct ChatRequest {
  GenerationOptions options;
  OrderedJson messages;  // [{"role", "content", ...}], content always a string
};

// `body` is the text of the request. Errors: kInvalidArgument, with ErrorField where one field is to blame; kUnimplemented for features
// that are not served (tools, response_format other than text, suffix, best_of): never ignored when they would change the answer.
absl::StatusOr<CompletionRequest> ParseCompletionRequest(const std::string& body, int64_t vocab_size);
absl::StatusOr<ChatRequest> ParseChatRequest(const std::string& body, int64_t vocab_size);

}  // namespace pith
