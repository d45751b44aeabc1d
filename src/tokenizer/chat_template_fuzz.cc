// Parses and renders whatever it is given. The first line of the input, if it is a JSON array, is the conversation.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "tokenizer/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  absl::string_view source(reinterpret_cast<const char*>(data), size);
  pith::ChatTemplateInputs inputs = {.messages = pith::OrderedJson::array(), .bos_token = "<s>", .eos_token = "</s>"};
  inputs.messages.push_back({{"role", "user"}, {"content", "Hi \xC3\xA9 <|im_end|>"}});
  const size_t newline = source.find('\n');
  if (newline != absl::string_view::npos) {
    const absl::string_view line = source.substr(0, newline);
    pith::OrderedJson messages = pith::OrderedJson::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    if (messages.is_array()) {
      inputs.messages = std::move(messages);
      source.remove_prefix(newline + 1);
    }
  }
  const pith::ChatTemplateLimits limits = {.steps = 20'000, .depth = 64, .range = 1'000, .output_bytes = size_t{1} << 18, .wall_ms = 2'000};
  const absl::StatusOr<pith::ChatTemplate> parsed = pith::ChatTemplate::Parse(source, limits);
  if (!parsed.ok()) return 0;
  const absl::StatusOr<std::string> text = parsed->Render(inputs);
  const absl::StatusOr<std::vector<pith::RenderedPiece>> pieces = parsed->RenderPieces(inputs);
  if (!text.ok() || !pieces.ok()) return 0;
  std::string joined;
  bool alternates = true;
  for (size_t i = 0; i < pieces->size(); ++i) {
    joined += (*pieces)[i].text;
    alternates = alternates && !(*pieces)[i].text.empty() && (i == 0 || (*pieces)[i].user_text != (*pieces)[i - 1].user_text);
  }
  if (joined != *text || !alternates) __builtin_trap();
  return 0;
}
