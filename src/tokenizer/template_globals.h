// The functions every template sees: range, dict, namespace, raise_exception, strftime_now.
#pragma once

#include "absl/strings/string_view.h"
#include "tokenizer/template_function.h"

namespace pith::jinja {

// nullptr when there is no global of that name.
const NativeFunction* FindGlobal(absl::string_view name);

}  // namespace pith::jinja
