#include "server/openai_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"

namespace pith {
namespace {

constexpr int64_t kVocab = 100;

// The field a completion body is refused for; "ok" when it is not.
std::string Refused(const std::string& fields) {
  const auto parsed = ParseCompletionRequest("{\"prompt\": \"x\"" + (fields.empty() ? "" : ", " + fields) + "}", kVocab);
  return parsed.ok() ? "ok" : ErrorField(parsed.status());
}

TEST(CompletionRequestTest, DefaultsAreThoseOfTheApi) {
  const auto request = ParseCompletionRequest(R"({"prompt": "x"})", kVocab);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->options.max_tokens, 16);
  EXPECT_EQ(request->options.sampling.temperature, 1.0f);
  EXPECT_EQ(request->options.sampling.logprobs, -1);
  EXPECT_FALSE(request->options.seed.has_value());
  EXPECT_FALSE(request->options.stream);
}

TEST(CompletionRequestTest, LimitsAreInclusiveAndEverythingBeyondIsRefusedByName) {
  for (const char* good : {"\"temperature\": 0", "\"temperature\": 2", "\"top_p\": 1", "\"top_k\": -1", "\"n\": 16", "\"n\": 2.0",
                           "\"max_tokens\": 0", "\"stop\": [\"a\"]", "\"logit_bias\": {\"99\": -100}", "\"logprobs\": 20",
                           "\"seed\": -9223372036854775808", "\"best_of\": 1", "\"stop\": null"}) {
    EXPECT_EQ(Refused(good), "ok") << good;
  }
  const std::pair<const char*, const char*> bad[] = {{"\"temperature\": 2.0001", "temperature"},
                                                     {"\"top_p\": 0", "top_p"},
                                                     {"\"top_k\": -2", "top_k"},
                                                     {"\"n\": 17", "n"},
                                                     {"\"n\": true", "n"},
                                                     {"\"max_tokens\": 1e99", "max_tokens"},
                                                     {"\"stop\": [\"\"]", "stop"},
                                                     {"\"logit_bias\": {\"100\": 0}", "logit_bias"},
                                                     {"\"logit_bias\": {\"-1\": 0}", "logit_bias"},
                                                     {"\"logprobs\": 21", "logprobs"},
                                                     {"\"suffix\": \"y\"", "suffix"},
                                                     {"\"best_of\": 2", "best_of"},
                                                     {"\"repetition_penalty\": 0", "repetition_penalty"},
                                                     {"\"stream_options\": {}", "stream_options"},
                                                     {"\"seed\": 1.5", "seed"},
                                                     {"\"seed\": 9223372036854775808.0", "seed"},
                                                     {"\"temperature\": 1e40", "temperature"},
                                                     {"\"temperature\": \"hot\"", "temperature"},
                                                     {"\"min_tokens\": -1", "min_tokens"},
                                                     {"\"logit_bias\": {\"1\": 100.5}", "logit_bias"},
                                                     {"\"logit_bias\": {\"1\": 1, \"01\": 2}", "logit_bias"},
                                                     {"\"guided_json\": {}", "guided_json"}};
  for (const auto& [fields, name] : bad) EXPECT_EQ(Refused(fields), name) << fields;
}

TEST(CompletionRequestTest, PromptsInEveryForm) {
  const auto prompts = [](const std::string& prompt) { return ParseCompletionRequest("{\"prompt\": " + prompt + "}", kVocab); };
  EXPECT_EQ(prompts("\"a\"")->prompts.size(), 1u);
  EXPECT_EQ(prompts("[\"a\", \"b\"]")->prompts.size(), 2u);
  EXPECT_EQ(std::get<std::vector<int32_t>>(prompts("[1, 2, 99]")->prompts[0]), (std::vector<int32_t>{1, 2, 99}));
  EXPECT_EQ(prompts("[[1], [2, 3]]")->prompts.size(), 2u);
  for (const char* bad : {"null", "[]", "5", "[100]", "[-1]", "[1, \"a\"]", "[[1.5]]", "{}"})
    EXPECT_EQ(ErrorField(prompts(bad).status()), "prompt") << bad;
}

TEST(ChatRequestTest, MessagesAreCheckedOneByOne) {
  const auto field = [](const std::string& messages) {
    return ErrorField(ParseChatRequest("{\"messages\": " + messages + "}", kVocab).status());
  };
  EXPECT_EQ(field("[]"), "messages");
  EXPECT_EQ(field(R"([{"role": "user", "content": "a"}, {"role": "x", "content": "b"}])"), "messages.1.role");
  EXPECT_EQ(field(R"([{"role": "user", "content": 5}])"), "messages.0.content");
  EXPECT_EQ(field(R"([{"role": "assistant", "content": "a", "tool_calls": [1]}])"), "messages.0.tool_calls");
  const auto parts = ParseChatRequest(
      R"({"messages": [{"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]})", kVocab);
  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ(parts->messages[0]["content"], "ab");
  EXPECT_EQ(parts->messages[0]["role"], "system");
  EXPECT_FALSE(parts->options.max_tokens.has_value());
}

TEST(ChatRequestTest, SamplingParametersHaveTheirRanges) {
  const std::string message = R"({"messages": [{"role": "user", "content": "a"}], )";
  EXPECT_EQ(ErrorField(ParseChatRequest(message + "\"temperature\": 2.5}", kVocab).status()), "temperature");
  EXPECT_EQ(ErrorField(ParseChatRequest(message + "\"min_p\": -0.1}", kVocab).status()), "min_p");
  EXPECT_EQ(ParseChatRequest(message + "\"min_p\": 0.1}", kVocab)->options.sampling.min_p, 0.1f);
}

TEST(ChatRequestTest, LogprobsNeedTheSwitch) {
  const std::string message = R"({"messages": [{"role": "user", "content": "a"}], )";
  EXPECT_EQ(ErrorField(ParseChatRequest(message + "\"top_logprobs\": 1}", kVocab).status()), "top_logprobs");
  EXPECT_EQ(ParseChatRequest(message + "\"logprobs\": true, \"top_logprobs\": 3}", kVocab)->options.sampling.logprobs, 3);
  EXPECT_EQ(ParseChatRequest(message + "\"logprobs\": true}", kVocab)->options.sampling.logprobs, 0);
}

TEST(RequestTest, BodiesThatAreNoObjectAreRefused) {
  for (const char* body : {"", "[]", "3", "{\"a\":1,\"a\":2}", "{\"prompt\": \"\xff\"}"})
    EXPECT_FALSE(ParseCompletionRequest(body, kVocab).ok()) << body;
}

}  // namespace
}  // namespace pith
