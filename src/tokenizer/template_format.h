// The three ways Python formats text: "%s" % values, "{}".format(values), and strftime.
//
// Formatted strings keep their origin, the format's own text keeps its own. A field whose value holds user text is the user's.
// Attributes in "{0.name}" go through the same look-up as in expressions, so a format string reaches nothing more.
// Errors: fields without a value, conversions that do not fit, passed limits.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "tokenizer/template_function.h"
#include "tokenizer/template_runtime.h"
#include "tokenizer/template_value.h"

namespace pith::jinja {

// format % values. Conversions d i u o x X e E f F g G c r s a %, with flags, width, precision, "*" and "(name)".
absl::StatusOr<TextPtr> FormatPercent(Runtime& runtime, const TextPtr& format, const Value& values);

// format.format(...): automatic and explicit fields, !r !s !a, nested specs, and the format specs of str, int and float (not "n").
absl::StatusOr<Value> FormatBraces(Runtime& runtime, const TextPtr& format, Arguments arguments);

// strftime in UTC, the C locale. Directives as glibc knows them; %f is 000000, %z and %Z are empty.
absl::StatusOr<TextPtr> FormatTime(Runtime& runtime, const TextPtr& format, int64_t unix_seconds);

}  // namespace pith::jinja
