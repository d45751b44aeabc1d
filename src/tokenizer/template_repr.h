// str() and repr() of values, as Python prints them, with provenance.
//
// Text keeps its runs. A container that holds any text of the user, or came with the inputs, prints as the user's as a whole.
#pragma once

#include "absl/status/statusor.h"
#include "tokenizer/template_runtime.h"
#include "tokenizer/template_value.h"

namespace pith::jinja {

// str(value). Text is returned as it is, but for the mark of markup.
absl::StatusOr<TextPtr> ToText(Budget& budget, const Value& value);
// repr(value): text in quotes.
absl::StatusOr<TextPtr> Repr(Budget& budget, const Value& value);

// Whether any text in it, or the container itself, came from the user.
absl::StatusOr<bool> HasUserText(Budget& budget, const Value& value);

// Appends 'text' quoted and escaped as repr(str) does, or with \x, \u and \U for everything outside ASCII.
void AppendQuoted(absl::string_view text, bool ascii_only, std::string* out);

}  // namespace pith::jinja
