// The JSON of completions and chat completions, whole and in chunks. Source: OpenAI API reference; docs/http_api.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/request.h"
#include "tokenizer/tokenizer.h"

namespace pith {

enum class ResponseKind { kCompletion, kChat };

struct TokenUsage {
  int64_t prompt_tokens = 0, completion_tokens = 0;
};

// What all responses of one request share.
struct ResponseHeader {
  ResponseKind kind = ResponseKind::kCompletion;
  std::string id;  // "cmpl-..." or "chatcmpl-..."
  int64_t created_unix_seconds = 0;
  std::string model;
  std::string fingerprint;
};

// The tokens of one choice, or of a part of it, with log-probabilities.
struct LogprobTokens {
  std::vector<SampleResult> tokens;
  std::vector<int64_t> text_offsets;  // completions: where each token's text begins
  bool first_has_logprob = true;      // false: the first token of an echoed prompt
  bool as_ids = false;                // tokens are named "token_id:17"
};

// "stop" or "length"; null while unfinished.
OrderedJson FinishReasonJson(FinishReason reason);

OrderedJson LogprobsJson(ResponseKind kind, const LogprobTokens& tokens, const Tokenizer& tokenizer);

// One element of "choices" of a whole response; logprobs may be null.
OrderedJson ChoiceJson(ResponseKind kind, int64_t index, const std::string& text, OrderedJson logprobs, FinishReason finish);
// One element of "choices" of a chunk. `role`: the chat chunk that opens a choice.
OrderedJson ChunkChoiceJson(ResponseKind kind, int64_t index, const std::string& text, OrderedJson logprobs, FinishReason finish,
                            bool role);

OrderedJson UsageJson(const TokenUsage& usage);
OrderedJson ResponseJson(const ResponseHeader& header, OrderedJson choices, const TokenUsage& usage);
OrderedJson ChunkJson(const ResponseHeader& header, OrderedJson choices);

// "data: <json>\n\n"
std::string SseFrame(const OrderedJson& json);
inline constexpr char kSseDone[] = "data: [DONE]\n\n";

}  // namespace pith
