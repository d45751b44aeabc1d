#include "tokenizer/chat_template.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "tokenizer/template_interpreter.h"
#include "tokenizer/template_parser.h"
#include "tokenizer/template_runtime.h"
#include "tokenizer/template_unicode.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

constexpr absl::string_view kReservedNames[] = {"messages", "tools", "add_generation_prompt", "bos_token", "eos_token"};

absl::StatusOr<jinja::Value> SpecialToken(absl::string_view name, const std::string& token) {
  if (!IsValidUtf8(token)) return UsageError(name, ": expected UTF-8 text, found \"", Printable(token), "\"");
  return jinja::MakeString(token);
}

// The names a template sees, as transformers passes them.
absl::StatusOr<jinja::Variables> MakeVariables(jinja::Budget& budget, const ChatTemplateInputs& inputs) {
  jinja::Variables variables;
  variables["documents"] = jinja::Value(jinja::None{});
  if (!inputs.extra.is_object() && !inputs.extra.is_null())
    return UsageError("chat_template_kwargs: expected an object, found ", inputs.extra.type_name());
  for (auto item = inputs.extra.begin(); item != inputs.extra.end(); ++item) {
    for (const absl::string_view reserved : kReservedNames) {
      if (item.key() == reserved) return UsageError("chat_template_kwargs: '", reserved, "' cannot be set here");
    }
    ASSIGN_OR_RETURN(variables[item.key()], jinja::ValueFromJson(budget, item.value()));
  }
  ASSIGN_OR_RETURN(variables["messages"], jinja::ValueFromJson(budget, inputs.messages));
  ASSIGN_OR_RETURN(variables["tools"], jinja::ValueFromJson(budget, inputs.tools));
  ASSIGN_OR_RETURN(variables["bos_token"], SpecialToken("bos_token", inputs.bos_token));
  ASSIGN_OR_RETURN(variables["eos_token"], SpecialToken("eos_token", inputs.eos_token));
  variables["add_generation_prompt"] = jinja::Value(inputs.add_generation_prompt);
  return variables;
}

}  // namespace

struct ChatTemplate::Impl {
  std::string source;
  ChatTemplateLimits limits;
  jinja::ParsedTemplate parsed;

  absl::StatusOr<jinja::TextPtr> Render(const ChatTemplateInputs& inputs) const {
    jinja::Runtime runtime(limits, inputs.now_unix_seconds);
    ASSIGN_OR_RETURN(const jinja::Variables variables, MakeVariables(runtime.budget(), inputs));
    return jinja::Interpreter(parsed, runtime, variables).Run();
  }
};

ChatTemplate::ChatTemplate(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

absl::StatusOr<ChatTemplate> ChatTemplate::Parse(absl::string_view source, const ChatTemplateLimits& limits) {
  absl::StatusOr<jinja::ParsedTemplate> parsed = jinja::ParseTemplate(source, limits);
  if (!parsed.ok()) return Annotate(parsed.status(), "chat template");
  return ChatTemplate(std::make_shared<const Impl>(Impl{std::string(source), limits, *std::move(parsed)}));
}

absl::StatusOr<std::string> ChatTemplate::Render(const ChatTemplateInputs& inputs) const {
  const absl::StatusOr<jinja::TextPtr> text = impl_->Render(inputs);
  if (!text.ok()) return Annotate(text.status(), "chat template");
  return (*text)->bytes();
}

absl::StatusOr<std::vector<RenderedPiece>> ChatTemplate::RenderPieces(const ChatTemplateInputs& inputs) const {
  const absl::StatusOr<jinja::TextPtr> text = impl_->Render(inputs);
  if (!text.ok()) return Annotate(text.status(), "chat template");
  std::vector<RenderedPiece> pieces;
  size_t begin = 0;
  for (const jinja::TextRun& run : (*text)->runs()) {
    pieces.push_back({(*text)->bytes().substr(begin, run.end - begin), run.user});
    begin = run.end;
  }
  return pieces;
}

const std::string& ChatTemplate::source() const { return impl_->source; }

}  // namespace pith
