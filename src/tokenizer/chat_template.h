// Chat templates: the subset of Jinja that published models use, interpreted with fuel, depth, output and time limits and no host objects.
//
//   ASSIGN_OR_RETURN(ChatTemplate tmpl, ChatTemplate::Parse(source));
//   ASSIGN_OR_RETURN(std::string prompt, tmpl.Render({.messages = messages, .add_generation_prompt = true, .bos_token = "<s>"}));
//
// Covered: for (with loop.*, else, recursive not), if/elif/else, set (incl. block set), macro and call, filter blocks, whitespace control,
// expressions with attributes, subscripts, slices, tests, filters, namespace(), raise_exception(), strftime_now(), range(), dict(),
// joiner/cycler not. Attribute look-up sees dict keys and the listed methods of str, list and dict only. Matches jinja2 with trim_blocks
// and lstrip_blocks (the settings of transformers). Thread-safe after Parse. Errors: kInvalidArgument with line and reason, for bad syntax,
// raise_exception, an undefined operation or a passed limit.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json.h"

namespace pith {

struct ChatTemplateLimits {
  int64_t steps = 1'000'000;
  int depth = 128;
  int64_t range = 100'000;
  size_t output_bytes = size_t{8} << 20;
  int64_t wall_ms = 250;
};

// A stretch of the rendered prompt. Text that came from messages, tools or other user-supplied variables is `user_text`; text the template
// itself wrote (with bos/eos tokens) is not. Special tokens are parsed only in the latter, so user text never produces special ids.
struct RenderedPiece {
  std::string text;
  bool user_text = false;
};

struct ChatTemplateInputs {
  OrderedJson messages;  // [{"role": "user", "content": "..."}, ...]
  OrderedJson tools;     // null or an array
  bool add_generation_prompt = true;
  std::string bos_token, eos_token;
  OrderedJson extra = OrderedJson::object();  // chat_template_kwargs: JSON scalars only, checked by the caller
  int64_t now_unix_seconds = 0;               // for strftime_now (UTC)
};

class ChatTemplate {
 public:
  static absl::StatusOr<ChatTemplate> Parse(absl::string_view source, const ChatTemplateLimits& limits = {});
  absl::StatusOr<std::string> Render(const ChatTemplateInputs& inputs) const;
  // The same text cut where its origin changes; adjacent pieces of one origin are joined.
  absl::StatusOr<std::vector<RenderedPiece>> RenderPieces(const ChatTemplateInputs& inputs) const;
  const std::string& source() const;

 private:
  struct Impl;
  explicit ChatTemplate(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

}  // namespace pith
