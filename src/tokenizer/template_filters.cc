#include "tokenizer/template_filters.h"

namespace pith::jinja {

const NativeFunction* FindFilter(absl::string_view name) {
  for (const absl::Span<const NativeFunction> table : {TextFilters(), NumberFilters(), SequenceFilters(), SelectionFilters()}) {
    if (const NativeFunction* filter = FindFunction(table, name)) return filter;
  }
  return nullptr;
}

}  // namespace pith::jinja
