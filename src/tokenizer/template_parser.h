// Parses a whole template: statements and text around the expressions.
//
// Statements: for, if, set (and block set), macro, call, filter, with, print, generation, break, continue. Refused by name: recursive
// loops, blocks and everything that reaches other templates (extends, include, import, from), autoescape.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/template_ast.h"

namespace pith::jinja {

// Errors: kInvalidArgument "line N: ..." for bad UTF-8 or syntax, an unknown filter or test that cannot be skipped, or the limit depth.
// Linear in the source, at most kMaxTemplateBytes of it.
absl::StatusOr<ParsedTemplate> ParseTemplate(absl::string_view source, const ChatTemplateLimits& limits);

inline constexpr size_t kMaxTemplateBytes = size_t{4} << 20;

}  // namespace pith::jinja
