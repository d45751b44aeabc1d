// What str methods and text filters do to a text, character by character, keeping the origin of each.
//
// All cost steps in proportion to the text they read and make. Results keep the markup of the text they come from.
// Errors: passed limits.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "tokenizer/template_budget.h"
#include "tokenizer/template_text.h"
#include "tokenizer/template_unicode.h"

namespace pith::jinja {

// Full case mappings, the final sigma included. Title: each word of cased characters; Capitalize: the first character only.
absl::StatusOr<TextPtr> UpperText(Budget& budget, const TextPtr& text);
absl::StatusOr<TextPtr> LowerText(Budget& budget, const TextPtr& text);
absl::StatusOr<TextPtr> TitleText(Budget& budget, const TextPtr& text);
absl::StatusOr<TextPtr> CapitalizeText(Budget& budget, const TextPtr& text);
absl::StatusOr<TextPtr> SwapCaseText(Budget& budget, const TextPtr& text);

// Without white space, or the characters of `characters`, at the ends asked for.
absl::StatusOr<TextPtr> StripText(Budget& budget, const TextPtr& text, const Text* characters, bool left, bool right);

// The first `count` occurrences replaced, all when negative. An empty `old` stands between all characters.
absl::StatusOr<TextPtr> ReplaceText(Budget& budget, const TextPtr& text, const Text& old, const TextPtr& replacement, int64_t count);

// Pieces of a text, as byte ranges.
using TextRanges = std::vector<std::pair<size_t, size_t>>;
// At white space, at most `max_splits` times when not negative, counted from the right end if `from_right`.
absl::StatusOr<TextRanges> SplitAtSpace(Budget& budget, const Text& text, int64_t max_splits, bool from_right);
// At `separator`, not empty.
absl::StatusOr<TextRanges> SplitAtText(Budget& budget, const Text& text, const Text& separator, int64_t max_splits, bool from_right);
// Lines, without what ends them unless `keep_ends`.
absl::StatusOr<TextRanges> SplitLines(Budget& budget, const Text& text, bool keep_ends);

// `count` copies, none when negative.
absl::StatusOr<TextPtr> RepeatText(Budget& budget, const TextPtr& text, int64_t count);
// Filled with `fill` (one character) to `width` characters, on both sides if both; the odd one out falls as in Python.
absl::StatusOr<TextPtr> PadText(Budget& budget, const TextPtr& text, int64_t width, const Text& fill, bool left, bool right);

// & < > " ' as HTML entities; marked as markup. Markup stays as it is.
absl::StatusOr<TextPtr> EscapeText(Budget& budget, const TextPtr& text);
// Both in one, and marked as asked.
absl::StatusOr<TextPtr> ConcatTexts(Budget& budget, absl::Span<const TextPtr> texts, bool markup);
// The same text with or without the mark.
TextPtr MarkText(const TextPtr& text, bool markup);

// Characters `from`, `from + step`, ... , `count` of them; the step may be negative.
absl::StatusOr<TextPtr> PickCharacters(Budget& budget, const TextPtr& text, int64_t from, int64_t step, int64_t count);

}  // namespace pith::jinja
