// The tests: value is name(arguments).
#pragma once

#include "absl/strings/string_view.h"
#include "tokenizer/template_function.h"

namespace pith::jinja {

// nullptr when there is no test of that name. The value tested is the `self` of the function.
const NativeFunction* FindTest(absl::string_view name);

}  // namespace pith::jinja
