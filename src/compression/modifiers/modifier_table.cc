#include "absl/strings/str_join.h"
#include "base/status.h"
#include "compression/modifier.h"
#include "compression/modifiers/rtn.h"

namespace pith {
namespace {

constexpr ModifierRow kModifiers[] = {
    {"rtn", "round to nearest with a searched clipping range; no data", MakeRtnModifier},
};

}  // namespace

absl::Span<const ModifierRow> Modifiers() { return kModifiers; }

absl::StatusOr<const ModifierRow*> FindModifier(absl::string_view name) {
  for (const ModifierRow& row : kModifiers) {
    if (row.name == name) return &row;
  }
  return NotSupportedError(
      "method \"", Printable(name, 40), "\": not known; known are ",
      absl::StrJoin(Modifiers(), ", ", [](std::string* out, const ModifierRow& row) { absl::StrAppend(out, row.name); }));
}

}  // namespace pith
