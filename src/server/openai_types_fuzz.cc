// Request bodies of any content, for both endpoints: parsed into what the engine accepts, or a 400 with a message that can be shown.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "server/api_error.h"
#include "server/openai_types.h"

namespace pith {
namespace {

constexpr int64_t kVocabSize = 1000;

void CheckRefusal(const absl::Status& status) {
  const ApiError error = ToApiError(status);
  CHECK(error.status == 400);
  CHECK(!error.message.empty() && error.message.size() < 2000);
  for (const char c : error.message) CHECK(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
}

void CheckOptions(const GenerationOptions& options) {
  CHECK(Validate(options.sampling, kVocabSize).ok());
  CHECK(options.n >= 1 && options.n <= kMaxChoices);
  CHECK(options.max_tokens.value_or(0) >= 0);
  CHECK(options.stop.size() <= kMaxStopStrings);
  for (const std::string& stop : options.stop) CHECK(!stop.empty() && stop.size() <= kMaxStopBytes);
  CHECK(options.stream || !options.include_usage);
}

void TryCompletion(const std::string& body) {
  const auto request = ParseCompletionRequest(body, kVocabSize);
  if (!request.ok()) return CheckRefusal(request.status());
  CheckOptions(request->options);
  CHECK(request->prompts.size() >= 1 && request->prompts.size() <= kMaxPrompts);
  for (const auto& prompt : request->prompts) {
    if (!std::holds_alternative<std::vector<int32_t>>(prompt)) continue;
    for (const int32_t token : std::get<std::vector<int32_t>>(prompt)) CHECK(token >= 0 && token < kVocabSize);
  }
}

void TryChat(const std::string& body) {
  const auto request = ParseChatRequest(body, kVocabSize);
  if (!request.ok()) return CheckRefusal(request.status());
  CheckOptions(request->options);
  CHECK(request->messages.size() >= 1 && request->messages.size() <= kMaxMessages);
  for (const auto& message : request->messages) CHECK(message["role"].is_string() && message["content"].is_string());
}

}  // namespace
}  // namespace pith

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string body(reinterpret_cast<const char*>(data), size);
  pith::TryCompletion(body);
  pith::TryChat(body);
  return 0;
}
