// For tests only: renders a template with a small fixed conversation.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tokenizer/chat_template.h"

namespace pith::jinja {

// Variables beside the messages: n f s l d yes nil. The clock of strftime_now stands at 2024-07-31 23:05:45 UTC.
inline ChatTemplateInputs TestInputs() {
  return {.messages = OrderedJson::parse(R"json([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": " Hi <b>you</b> "},
            {"role": "assistant", "content": "yo", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1, "b": [1.5, null, true]}}}]}
          ])json"),
          .tools = OrderedJson::parse(R"json([{"type": "function", "function": {"name": "get", "description": "it's"}}])json"),
          .bos_token = "<s>",
          .eos_token = "</s>",
          .extra = OrderedJson::parse(
              R"json({"n": 5, "f": 2.5, "s": "Straße ﬁ ΑΣ", "l": [3, 1, 2], "d": {"b": 2, "a": 1, "C": 3}, "yes": true, "nil": null})json"),
          .now_unix_seconds = 1722467145};
}

// The text, or "ERROR: " and the message.
inline std::string Render(absl::string_view source, const ChatTemplateLimits& limits = {.wall_ms = 20'000},
                          const ChatTemplateInputs& inputs = TestInputs()) {
  const absl::StatusOr<ChatTemplate> parsed = ChatTemplate::Parse(source, limits);
  const absl::StatusOr<std::string> text = parsed.ok() ? parsed->Render(inputs) : absl::StatusOr<std::string>(parsed.status());
  return text.ok() ? *text : absl::StrCat("ERROR: ", text.status().message());
}

// The same for one expression.
inline std::string Evaluate(absl::string_view expression) { return Render(absl::StrCat("{{ ", expression, " }}")); }

// The rendered text with what came from the user in brackets: "<s>[Hi]</s>".
inline std::string RenderOrigins(absl::string_view source, const ChatTemplateInputs& inputs = TestInputs()) {
  const absl::StatusOr<ChatTemplate> parsed = ChatTemplate::Parse(source, {.wall_ms = 20'000});
  if (!parsed.ok()) return absl::StrCat("ERROR: ", parsed.status().message());
  const absl::StatusOr<std::vector<RenderedPiece>> pieces = parsed->RenderPieces(inputs);
  if (!pieces.ok()) return absl::StrCat("ERROR: ", pieces.status().message());
  std::string shown;
  for (const RenderedPiece& piece : *pieces) absl::StrAppend(&shown, piece.user_text ? "[" : "", piece.text, piece.user_text ? "]" : "");
  return shown;
}

struct Example {
  const char* expression;
  const char* expected;
};

}  // namespace pith::jinja
