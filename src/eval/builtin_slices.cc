#include "eval/builtin_slices.h"

namespace pith {
namespace {

constexpr BuiltinSlice kSlices[] = {
// {name, file, rows} of every .jsonl file; written by CMake.
#include "builtin_slice_rows.inc"
};

}  // namespace

absl::Span<const BuiltinSlice> BuiltinSlices() { return kSlices; }

}  // namespace pith
