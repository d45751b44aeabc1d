// The filters: value|name(arguments).
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tokenizer/template_function.h"

namespace pith::jinja {

// nullptr when there is no filter of that name. The input of a filter is the `self` of the function.
const NativeFunction* FindFilter(absl::string_view name);

// The tables it looks through.
absl::Span<const NativeFunction> TextFilters();       // upper, replace, tojson, ...
absl::Span<const NativeFunction> NumberFilters();     // int, round, ...
absl::Span<const NativeFunction> SequenceFilters();   // join, first, sort, ...
absl::Span<const NativeFunction> SelectionFilters();  // map, select, batch, ...: those that give iterators

}  // namespace pith::jinja
