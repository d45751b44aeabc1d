#include "server/openai_types.h"

#include <limits>

#include "absl/strings/numbers.h"
#include "base/status.h"
#include "server/request_fields.h"

namespace pith {
namespace {

constexpr int64_t kMinInt = std::numeric_limits<int32_t>::min(), kMaxInt = std::numeric_limits<int32_t>::max();

absl::StatusOr<Json> ParseBody(const std::string& body) {
  const auto parsed = ParseJson(body, {.max_depth = 64});
  if (!parsed.ok()) return UsageError("the request body is not JSON: ", parsed.status().message());
  if (!parsed->is_object()) return UsageError("the request body: expected a JSON object, found ", Printable(DumpJson(*parsed), 60));
  return parsed;
}

void ReadLogitBias(RequestFields& fields, int64_t vocab_size, SamplingParams& sampling) {
  const Json* bias = fields.Find("logit_bias");
  if (bias == nullptr) return;
  if (!bias->is_object()) return fields.FailType("logit_bias", "an object of token ids", *bias);
  if (bias->size() > kMaxLogitBias)
    return fields.Fail("logit_bias", absl::StrCat("expected at most ", kMaxLogitBias, " entries, found ", bias->size()));
  for (const auto& [key, value] : bias->items()) {
    int64_t token = 0;
    if (!absl::SimpleAtoi(key, &token) || token < 0 || token >= vocab_size) {
      return fields.Fail("logit_bias", absl::StrCat("expected token ids in [0, ", vocab_size, ") as keys, found ", Printable(key, 40)));
    }
    if (!value.is_number()) return fields.FailType("logit_bias", "numbers as values", value);
    sampling.logit_bias.emplace_back(static_cast<int32_t>(token), value.get<float>());
  }
}

void ReadStop(RequestFields& fields, std::vector<std::string>& stop) {
  const Json* value = fields.Find("stop");
  if (value == nullptr) return;
  const Json list = value->is_string() ? Json::array({*value}) : *value;
  if (!list.is_array()) return fields.FailType("stop", "a string or an array of strings", *value);
  if (list.size() > kMaxStopStrings)
    return fields.Fail("stop", absl::StrCat("expected at most ", kMaxStopStrings, " strings, found ", list.size()));
  for (const Json& entry : list) {
    if (!entry.is_string() || entry.get_ref<const std::string&>().empty())
      return fields.FailType("stop", "strings that are not empty", entry);
    if (entry.get_ref<const std::string&>().size() > kMaxStopBytes) {
      return fields.Fail("stop", absl::StrCat("expected strings of at most ", kMaxStopBytes, " bytes, found one of ",
                                              entry.get_ref<const std::string&>().size()));
    }
    stop.push_back(entry.get<std::string>());
  }
}

void ReadStreamOptions(RequestFields& fields, GenerationOptions& options) {
  options.stream = fields.Bool("stream", false);
  const Json* stream_options = fields.Find("stream_options");
  if (stream_options == nullptr) return;
  if (!options.stream) return fields.Fail("stream_options", "expected only with \"stream\": true");
  if (!stream_options->is_object()) return fields.FailType("stream_options", "an object", *stream_options);
  RequestFields inner(*stream_options);
  options.include_usage = inner.Bool("include_usage", false);
  if (!inner.status().ok()) fields.Fail("stream_options", std::string(inner.status().message()));
}

// Types only: Validate checks the ranges, once all fields are read.
void ReadSampling(RequestFields& fields, int64_t vocab_size, GenerationOptions& options) {
  SamplingParams& s = options.sampling;
  s.temperature = fields.Float("temperature", s.temperature);
  s.top_p = fields.Float("top_p", s.top_p);
  s.top_k = static_cast<int>(fields.Int("top_k", kMinInt, kMaxInt, s.top_k));
  s.min_p = fields.Float("min_p", s.min_p);
  s.presence_penalty = fields.Float("presence_penalty", s.presence_penalty);
  s.frequency_penalty = fields.Float("frequency_penalty", s.frequency_penalty);
  s.repetition_penalty = fields.Float("repetition_penalty", s.repetition_penalty);
  s.min_tokens = static_cast<int>(fields.Int("min_tokens", kMinInt, kMaxInt, s.min_tokens));
  s.ignore_eos = fields.Bool("ignore_eos", s.ignore_eos);
  ReadLogitBias(fields, vocab_size, s);
  if (const auto seed = fields.OptionalInt("seed", std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max())) {
    options.seed = static_cast<uint64_t>(*seed);
  }
}

GenerationOptions ReadOptions(RequestFields& fields, int64_t vocab_size) {
  GenerationOptions options;
  options.model = fields.String("model", "");
  ReadSampling(fields, vocab_size, options);
  options.n = fields.Int("n", 1, kMaxChoices, 1);
  ReadStop(fields, options.stop);
  ReadStreamOptions(fields, options);
  options.tokens_as_ids = fields.Bool("return_tokens_as_token_ids", false);
  return options;
}

// A feature that would change the answer must be refused, not ignored.
void RefuseUnserved(RequestFields& fields, std::initializer_list<absl::string_view> names) {
  for (const absl::string_view name : names) {
    const Json* value = fields.Find(name);
    if (value == nullptr || (value->is_array() && value->empty()) || (value->is_string() && value->get_ref<const std::string&>().empty()))
      continue;
    fields.Fail(name, "is not supported by this server");
  }
}

void CheckResponseFormat(RequestFields& fields) {
  const Json* format = fields.Find("response_format");
  if (format == nullptr) return;
  const Json* type = FindMember(*format, "type");
  if (type == nullptr || *type != "text") fields.Fail("response_format", "only {\"type\": \"text\"} is supported by this server");
}

std::optional<std::vector<int32_t>> TokenIds(const Json& list, int64_t vocab_size) {
  std::vector<int32_t> ids;
  for (const Json& id : list) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= vocab_size) return std::nullopt;
    ids.push_back(id.get<int32_t>());
  }
  return ids;
}

void ReadPrompts(RequestFields& fields, int64_t vocab_size, CompletionRequest& request) {
  const Json* prompt = fields.Find("prompt");
  constexpr absl::string_view kExpected = "a string, an array of strings, token ids or an array of token ids";
  if (prompt == nullptr) return fields.Fail("prompt", absl::StrCat("expected ", kExpected, ", found nothing"));
  if (prompt->is_string()) {
    request.prompts.emplace_back(prompt->get<std::string>());
    return;
  }
  if (!prompt->is_array() || prompt->empty()) return fields.FailType("prompt", kExpected, *prompt);
  const bool flat_ids = prompt->front().is_number();
  const Json list = flat_ids ? Json::array({*prompt}) : *prompt;
  if (list.size() > kMaxPrompts)
    return fields.Fail("prompt", absl::StrCat("expected at most ", kMaxPrompts, " prompts, found ", list.size()));
  for (const Json& entry : list) {
    if (entry.is_string()) {
      request.prompts.emplace_back(entry.get<std::string>());
    } else if (entry.is_array()) {
      auto ids = TokenIds(entry, vocab_size);
      if (!ids.has_value()) return fields.FailType("prompt", absl::StrCat("token ids in [0, ", vocab_size, ")"), entry);
      request.prompts.emplace_back(*std::move(ids));
    } else {
      return fields.FailType("prompt", kExpected, entry);
    }
  }
}

// The text of a message's content: a string, or the text parts of an array. nullopt when it is neither.
std::optional<std::string> ContentText(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) return std::nullopt;
  std::string text;
  for (const Json& part : content) {
    const Json* type = FindMember(part, "type");
    const Json* piece = FindMember(part, "text");
    if (type == nullptr || *type != "text" || piece == nullptr || !piece->is_string()) return std::nullopt;
    text += piece->get_ref<const std::string&>();
  }
  return text;
}

absl::Status ReadMessage(const Json& message, size_t index, OrderedJson& messages) {
  const std::string field = absl::StrCat("messages.", index);
  const Json* role = FindMember(message, "role");
  static const std::vector<std::string> kRoles = {"system", "developer", "user", "assistant", "tool"};
  if (role == nullptr || !role->is_string() || std::find(kRoles.begin(), kRoles.end(), *role) == kRoles.end()) {
    return FieldError(absl::StrCat(field, ".role"), "expected system, developer, user, assistant or tool, found ",
                      role == nullptr ? "nothing" : Printable(DumpJson(*role), 60));
  }
  if (FindMember(message, "tool_calls") != nullptr)
    return FieldError(absl::StrCat(field, ".tool_calls"), "is not supported by this server");
  const Json* content = FindMember(message, "content");
  const std::optional<std::string> text = content == nullptr ? std::nullopt : ContentText(*content);
  if (!text.has_value()) {
    return FieldError(absl::StrCat(field, ".content"), "expected a string or an array of text parts, found ",
                      content == nullptr ? "nothing" : Printable(DumpJson(*content), 60));
  }
  OrderedJson checked = {{"role", *role == "developer" ? "system" : role->get<std::string>()}, {"content", *text}};
  if (const Json* name = FindMember(message, "name"); name != nullptr && name->is_string()) checked["name"] = name->get<std::string>();
  messages.push_back(std::move(checked));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CompletionRequest> ParseCompletionRequest(const std::string& body, int64_t vocab_size) {
  ASSIGN_OR_RETURN(const Json json, ParseBody(body));
  RequestFields fields(json);
  CompletionRequest request{.options = ReadOptions(fields, vocab_size)};
  request.options.max_tokens = fields.Int("max_tokens", 0, kMaxInt, 16);
  request.options.sampling.logprobs = static_cast<int>(fields.Int("logprobs", 0, kMaxTopLogprobs, -1));
  request.echo = fields.Bool("echo", false);
  ReadPrompts(fields, vocab_size, request);
  RefuseUnserved(fields, {"suffix", "prompt_embeds", "guided_json", "guided_regex", "guided_grammar"});
  CheckResponseFormat(fields);
  if (const auto best_of = fields.OptionalInt("best_of", 1, kMaxChoices); best_of.has_value() && *best_of != request.options.n) {
    fields.Fail("best_of", "only best_of equal to n is supported by this server");
  }
  fields.Record(Validate(request.options.sampling, vocab_size));
  RETURN_IF_ERROR(fields.status());
  return request;
}

absl::StatusOr<ChatRequest> ParseChatRequest(const std::string& body, int64_t vocab_size) {
  ASSIGN_OR_RETURN(const Json json, ParseBody(body));
  RequestFields fields(json);
  ChatRequest request{.options = ReadOptions(fields, vocab_size), .messages = OrderedJson::array()};
  request.options.max_tokens = fields.OptionalInt("max_completion_tokens", 0, kMaxInt);
  if (!request.options.max_tokens.has_value()) request.options.max_tokens = fields.OptionalInt("max_tokens", 0, kMaxInt);
  const bool logprobs = fields.Bool("logprobs", false);
  const auto top_logprobs = fields.OptionalInt("top_logprobs", 0, kMaxTopLogprobs);
  if (top_logprobs.has_value() && !logprobs) fields.Fail("top_logprobs", "expected only with \"logprobs\": true");
  request.options.sampling.logprobs = logprobs ? static_cast<int>(top_logprobs.value_or(0)) : -1;
  RefuseUnserved(fields,
                 {"tools", "functions", "guided_json", "guided_regex", "guided_grammar", "audio", "chat_template", "chat_template_kwargs"});
  CheckResponseFormat(fields);
  fields.Record(Validate(request.options.sampling, vocab_size));
  RETURN_IF_ERROR(fields.status());
  const Json* messages = fields.Find("messages");
  if (messages == nullptr || !messages->is_array() || messages->empty() || messages->size() > kMaxMessages) {
    return FieldError("messages", "expected an array of 1 to ", kMaxMessages, " messages, found ",
                      messages == nullptr    ? "nothing"
                      : messages->is_array() ? absl::StrCat(messages->size())
                                             : Printable(DumpJson(*messages), 60));
  }
  for (size_t i = 0; i < messages->size(); ++i) RETURN_IF_ERROR(ReadMessage((*messages)[i], i, request.messages));
  return request;
}

}  // namespace pith
