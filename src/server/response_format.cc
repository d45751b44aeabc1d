#include "server/response_format.h"

#include <cmath>

namespace pith {
namespace {

constexpr double kLowestLogprob = -9999.0;  // JSON has no -infinity; vLLM's choice

double FiniteLogprob(float logprob) { return std::isfinite(logprob) ? static_cast<double>(logprob) : kLowestLogprob; }

// A token's text; bytes that are no UTF-8 of their own are replaced when dumped.
std::string TokenString(const Tokenizer& tokenizer, int32_t token, bool as_id) {
  if (as_id) return absl::StrCat("token_id:", token);
  std::string bytes = tokenizer.TokenBytes(token);
  return bytes.empty() ? tokenizer.TokenText(token) : bytes;
}

OrderedJson ChatTokenJson(const Tokenizer& tokenizer, int32_t token, float logprob, bool as_id) {
  const std::string text = TokenString(tokenizer, token, /*as_id=*/false);
  OrderedJson bytes = OrderedJson::array();
  for (const char byte : text) bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", as_id ? TokenString(tokenizer, token, as_id) : text}, {"logprob", FiniteLogprob(logprob)}, {"bytes", bytes}};
}

OrderedJson ChatLogprobs(const LogprobTokens& tokens, const Tokenizer& tokenizer) {
  OrderedJson content = OrderedJson::array();
  for (const SampleResult& sample : tokens.tokens) {
    OrderedJson entry = ChatTokenJson(tokenizer, sample.token, sample.logprob, tokens.as_ids);
    OrderedJson top = OrderedJson::array();
    for (const TokenLogprob& other : sample.top_logprobs)
      top.push_back(ChatTokenJson(tokenizer, other.token, other.logprob, tokens.as_ids));
    entry["top_logprobs"] = top;
    content.push_back(std::move(entry));
  }
  return {{"content", content}};
}

OrderedJson CompletionLogprobs(const LogprobTokens& tokens, const Tokenizer& tokenizer) {
  OrderedJson texts = OrderedJson::array(), logprobs = OrderedJson::array(), tops = OrderedJson::array();
  for (size_t i = 0; i < tokens.tokens.size(); ++i) {
    const SampleResult& sample = tokens.tokens[i];
    texts.push_back(TokenString(tokenizer, sample.token, tokens.as_ids));
    if (i == 0 && !tokens.first_has_logprob) {
      logprobs.push_back(nullptr);
      tops.push_back(nullptr);
      continue;
    }
    logprobs.push_back(FiniteLogprob(sample.logprob));
    OrderedJson top = OrderedJson::object();
    for (const TokenLogprob& other : sample.top_logprobs)
      top[TokenString(tokenizer, other.token, tokens.as_ids)] = FiniteLogprob(other.logprob);
    top[TokenString(tokenizer, sample.token, tokens.as_ids)] = FiniteLogprob(sample.logprob);
    tops.push_back(std::move(top));
  }
  return {{"tokens", texts}, {"token_logprobs", logprobs}, {"top_logprobs", tops}, {"text_offset", tokens.text_offsets}};
}

OrderedJson Base(const ResponseHeader& header, const char* object) {
  return {{"id", header.id},
          {"object", object},
          {"created", header.created_unix_seconds},
          {"model", header.model},
          {"system_fingerprint", header.fingerprint}};
}

}  // namespace

OrderedJson FinishReasonJson(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone: return nullptr;
    case FinishReason::kLength: return "length";
    default: return "stop";
  }
}

OrderedJson LogprobsJson(ResponseKind kind, const LogprobTokens& tokens, const Tokenizer& tokenizer) {
  return kind == ResponseKind::kChat ? ChatLogprobs(tokens, tokenizer) : CompletionLogprobs(tokens, tokenizer);
}

OrderedJson ChoiceJson(ResponseKind kind, int64_t index, const std::string& text, OrderedJson logprobs, FinishReason finish) {
  OrderedJson choice = {{"index", index}};
  if (kind == ResponseKind::kChat) {
    choice["message"] = {{"role", "assistant"}, {"content", text}};
  } else {
    choice["text"] = text;
  }
  choice["logprobs"] = std::move(logprobs);
  choice["finish_reason"] = FinishReasonJson(finish);
  return choice;
}

OrderedJson ChunkChoiceJson(ResponseKind kind, int64_t index, const std::string& text, OrderedJson logprobs, FinishReason finish,
                            bool role) {
  OrderedJson choice = {{"index", index}};
  if (kind == ResponseKind::kChat) {
    OrderedJson delta = OrderedJson::object();
    if (role) delta["role"] = "assistant";
    if (role || !text.empty()) delta["content"] = text;
    choice["delta"] = delta;
  } else {
    choice["text"] = text;
  }
  choice["logprobs"] = std::move(logprobs);
  choice["finish_reason"] = FinishReasonJson(finish);
  return choice;
}

OrderedJson UsageJson(const TokenUsage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

OrderedJson ResponseJson(const ResponseHeader& header, OrderedJson choices, const TokenUsage& usage) {
  OrderedJson json = Base(header, header.kind == ResponseKind::kChat ? "chat.completion" : "text_completion");
  json["choices"] = std::move(choices);
  json["usage"] = UsageJson(usage);
  return json;
}

OrderedJson ChunkJson(const ResponseHeader& header, OrderedJson choices) {
  OrderedJson json = Base(header, header.kind == ResponseKind::kChat ? "chat.completion.chunk" : "text_completion");
  json["choices"] = std::move(choices);
  return json;
}

std::string SseFrame(const OrderedJson& json) { return "data: " + DumpJson(json) + "\n\n"; }

}  // namespace pith
