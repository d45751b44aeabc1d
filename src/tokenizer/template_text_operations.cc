#include "tokenizer/template_text_operations.h"

#include <algorithm>
#include <string>

#include "base/status.h"
#include "tokenizer/utf8.h"

namespace pith::jinja {
namespace {

constexpr size_t kNone = absl::string_view::npos;

void Append(const CaseMapping& mapping, bool user, TextBuilder* out) {
  for (int i = 0; i < mapping.size; ++i) out->AppendCodePoint(mapping.code_points[i], user);
}

// Whether the capital sigma at bytes [begin, end) ends a word: a cased character before it and none after, case-ignorable ones aside.
bool IsFinalSigma(const std::string& bytes, size_t begin, size_t end) {
  char32_t before = 0;
  while (begin > 0) {
    do --begin;
    while ((static_cast<unsigned char>(bytes[begin]) & 0xC0) == 0x80);
    size_t next = begin;
    before = DecodeUtf8(bytes, &next);
    if (!IsCaseIgnorable(before)) break;
    before = 0;
  }
  if (!IsCased(before)) return false;
  while (end < bytes.size()) {
    const char32_t after = DecodeUtf8(bytes, &end);
    if (!IsCaseIgnorable(after)) return !IsCased(after);
  }
  return true;
}

CaseMapping LowerInContext(const Text& text, const TextCursor& cursor) {
  if (cursor.code_point != U'\u03A3') return ToLower(cursor.code_point);
  return {{IsFinalSigma(text.bytes(), cursor.begin, cursor.end) ? U'\u03C2' : U'\u03C3'}, 1};
}

// Maps every character; `map` sees the cursor.
absl::StatusOr<TextPtr> MapText(Budget& budget, const TextPtr& text, absl::FunctionRef<CaseMapping(const TextCursor&)> map) {
  RETURN_IF_ERROR(budget.SpendText(text->bytes().size()));
  TextBuilder out;
  TextCursor cursor(*text);
  while (cursor.Next()) Append(map(cursor), cursor.user, &out);
  RETURN_IF_ERROR(budget.SpendText(out.size()));
  return std::move(out).Build(text->markup());
}

// The byte range left of `ranges` (or right of it) joined into its last (first) one, so that at most `max_splits` cuts remain.
TextRanges LimitSplits(TextRanges ranges, int64_t max_splits, bool from_right, size_t text_size) {
  if (max_splits < 0 || static_cast<int64_t>(ranges.size()) <= max_splits + 1) return ranges;
  const size_t kept = static_cast<size_t>(max_splits);
  if (from_right) {
    const size_t joined = ranges.size() - kept - 1;
    ranges[joined].first = 0;
    ranges.erase(ranges.begin(), ranges.begin() + static_cast<int64_t>(joined));
  } else {
    ranges[kept].second = text_size;
    ranges.resize(kept + 1);
  }
  return ranges;
}

}  // namespace

absl::StatusOr<TextPtr> UpperText(Budget& budget, const TextPtr& text) {
  return MapText(budget, text, [](const TextCursor& cursor) { return ToUpper(cursor.code_point); });
}

absl::StatusOr<TextPtr> LowerText(Budget& budget, const TextPtr& text) {
  return MapText(budget, text, [&](const TextCursor& cursor) { return LowerInContext(*text, cursor); });
}

absl::StatusOr<TextPtr> TitleText(Budget& budget, const TextPtr& text) {
  bool in_word = false;
  return MapText(budget, text, [&](const TextCursor& cursor) {
    const bool starts_word = !in_word;
    in_word = IsCased(cursor.code_point);
    return starts_word ? ToTitle(cursor.code_point) : LowerInContext(*text, cursor);
  });
}

absl::StatusOr<TextPtr> CapitalizeText(Budget& budget, const TextPtr& text) {
  return MapText(budget, text,
                 [&](const TextCursor& cursor) { return cursor.begin == 0 ? ToTitle(cursor.code_point) : LowerInContext(*text, cursor); });
}

absl::StatusOr<TextPtr> SwapCaseText(Budget& budget, const TextPtr& text) {
  return MapText(budget, text, [&](const TextCursor& cursor) {
    if (IsUpper(cursor.code_point)) return LowerInContext(*text, cursor);
    return IsLower(cursor.code_point) ? ToUpper(cursor.code_point) : CaseMapping{{cursor.code_point}, 1};
  });
}

absl::StatusOr<TextPtr> StripText(Budget& budget, const TextPtr& text, const Text* characters, bool left, bool right) {
  const std::string& bytes = text->bytes();
  RETURN_IF_ERROR(budget.SpendScan(bytes.size()));
  std::u32string set;
  if (characters != nullptr) {
    RETURN_IF_ERROR(budget.SpendScan(characters->bytes().size()));
    TextCursor cursor(*characters);
    while (cursor.Next()) set.push_back(cursor.code_point);
    std::sort(set.begin(), set.end());
  }
  const auto strips = [&](char32_t c) { return characters == nullptr ? IsSpace(c) : std::binary_search(set.begin(), set.end(), c); };
  size_t begin = 0, end = bytes.size();
  while (left && begin < end) {
    size_t next = begin;
    if (!strips(DecodeUtf8(bytes, &next))) break;
    begin = next;
  }
  while (right && begin < end) {
    size_t start = end - 1;
    while ((static_cast<unsigned char>(bytes[start]) & 0xC0) == 0x80) --start;
    size_t next = start;
    if (!strips(DecodeUtf8(bytes, &next))) break;
    end = start;
  }
  return SliceText(text, begin, end);
}

absl::StatusOr<TextPtr> ReplaceText(Budget& budget, const TextPtr& text, const Text& old, const TextPtr& replacement, int64_t count) {
  const std::string &bytes = text->bytes(), &sought = old.bytes();
  RETURN_IF_ERROR(budget.SpendScan(bytes.size()));
  TextBuilder out;
  size_t position = 0;
  for (; count != 0; --count) {
    const size_t hit = FindBytes(bytes, sought, position, bytes.size());
    if (hit == kNone) break;
    RETURN_IF_ERROR(budget.CheckText(out.size() + hit - position + replacement->bytes().size()));
    RETURN_IF_ERROR(budget.SpendScan(hit - position + replacement->bytes().size()));
    out.Append(*text, position, hit);
    out.Append(*replacement);
    position = hit + sought.size();
    if (!sought.empty()) continue;
    // An empty needle matches before every character and at the end.
    if (position == bytes.size()) break;
    size_t next = position;
    DecodeUtf8(bytes, &next);
    out.Append(*text, position, next);
    position = next;
  }
  RETURN_IF_ERROR(budget.CheckText(out.size() + bytes.size() - position));
  out.Append(*text, position, bytes.size());
  return std::move(out).Build(text->markup());
}

absl::StatusOr<TextRanges> SplitAtSpace(Budget& budget, const Text& text, int64_t max_splits, bool from_right) {
  RETURN_IF_ERROR(budget.SpendScan(text.bytes().size()));
  TextRanges words;
  TextCursor cursor(text);
  bool in_word = false;
  while (cursor.Next()) {
    const bool space = IsSpace(cursor.code_point);
    if (!space && !in_word) words.emplace_back(cursor.begin, cursor.end);
    if (!space) words.back().second = cursor.end;
    in_word = !space;
  }
  RETURN_IF_ERROR(budget.Spend(static_cast<int64_t>(words.size())));
  return LimitSplits(std::move(words), max_splits, from_right, text.bytes().size());
}

absl::StatusOr<TextRanges> SplitAtText(Budget& budget, const Text& text, const Text& separator, int64_t max_splits, bool from_right) {
  const std::string &bytes = text.bytes(), &sought = separator.bytes();
  RETURN_IF_ERROR(budget.SpendScan(bytes.size()));
  TextRanges pieces;
  // From the right, overlapping separators are taken at the other end, so the search itself must run backwards.
  if (from_right) {
    const std::string reversed(bytes.rbegin(), bytes.rend()), reversed_separator(sought.rbegin(), sought.rend());
    size_t position = 0, hit = 0;
    while (max_splits-- != 0 && (hit = FindBytes(reversed, reversed_separator, position, reversed.size())) != kNone) {
      pieces.emplace_back(bytes.size() - hit, bytes.size() - position);
      position = hit + sought.size();
    }
    pieces.emplace_back(0, bytes.size() - position);
    std::reverse(pieces.begin(), pieces.end());
  } else {
    size_t position = 0, hit = 0;
    while (max_splits-- != 0 && (hit = FindBytes(bytes, sought, position, bytes.size())) != kNone) {
      pieces.emplace_back(position, hit);
      position = hit + sought.size();
    }
    pieces.emplace_back(position, bytes.size());
  }
  RETURN_IF_ERROR(budget.Spend(static_cast<int64_t>(pieces.size())));
  return pieces;
}

absl::StatusOr<TextRanges> SplitLines(Budget& budget, const Text& text, bool keep_ends) {
  const std::string& bytes = text.bytes();
  RETURN_IF_ERROR(budget.SpendScan(bytes.size()));
  TextRanges lines;
  size_t begin = 0, position = 0;
  while (position < bytes.size()) {
    const size_t end = position;
    const char32_t c = DecodeUtf8(bytes, &position);
    if (!IsLineBreak(c)) continue;
    if (c == '\r' && position < bytes.size() && bytes[position] == '\n') ++position;
    lines.emplace_back(begin, keep_ends ? position : end);
    begin = position;
  }
  if (begin < bytes.size()) lines.emplace_back(begin, bytes.size());
  RETURN_IF_ERROR(budget.Spend(static_cast<int64_t>(lines.size())));
  return lines;
}

absl::StatusOr<TextPtr> RepeatText(Budget& budget, const TextPtr& text, int64_t count) {
  const size_t size = text->bytes().size();
  if (count <= 0 || size == 0) return SliceText(text, 0, 0);
  // One byte past the limit is enough to be refused, and cannot overflow.
  const size_t limit = budget.limits().output_bytes;
  RETURN_IF_ERROR(budget.SpendText(static_cast<uint64_t>(count) > limit / size ? limit + 1 : size * static_cast<size_t>(count)));
  TextBuilder out;
  for (int64_t i = 0; i < count; ++i) out.Append(*text);
  return std::move(out).Build(text->markup());
}

absl::StatusOr<TextPtr> PadText(Budget& budget, const TextPtr& text, int64_t width, const Text& fill, bool left, bool right) {
  if (fill.length() != 1) return UsageError("expected one character to fill with, found ", fill.length());
  const int64_t missing = std::max<int64_t>(0, width - text->length());
  if (missing == 0) return text;
  const size_t limit = budget.limits().output_bytes;
  RETURN_IF_ERROR(
      budget.SpendText(static_cast<uint64_t>(missing) > limit ? limit + 1 : text->bytes().size() + static_cast<size_t>(missing)));
  const int64_t before = !left ? 0 : !right ? missing : missing / 2 + (missing & width & 1);
  TextBuilder out;
  for (int64_t i = 0; i < before; ++i) out.Append(fill);
  out.Append(*text);
  for (int64_t i = before; i < missing; ++i) out.Append(fill);
  return std::move(out).Build(text->markup());
}

absl::StatusOr<TextPtr> EscapeText(Budget& budget, const TextPtr& text) {
  if (text->markup()) return text;
  RETURN_IF_ERROR(budget.SpendText(text->bytes().size()));
  TextBuilder out;
  TextCursor cursor(*text);
  while (cursor.Next()) {
    const char32_t c = cursor.code_point;
    const absl::string_view entity = c == '&'    ? "&amp;"
                                     : c == '<'  ? "&lt;"
                                     : c == '>'  ? "&gt;"
                                     : c == '"'  ? "&#34;"
                                     : c == '\'' ? "&#39;"
                                                 : absl::string_view(text->bytes()).substr(cursor.begin, cursor.end - cursor.begin);
    out.Append(entity, cursor.user);
  }
  RETURN_IF_ERROR(budget.SpendText(out.size()));
  return std::move(out).Build(/*markup=*/true);
}

absl::StatusOr<TextPtr> ConcatTexts(Budget& budget, absl::Span<const TextPtr> texts, bool markup) {
  size_t size = 0;
  for (const TextPtr& text : texts) size += text->bytes().size();
  RETURN_IF_ERROR(budget.SpendText(size));
  TextBuilder out;
  for (const TextPtr& text : texts) out.Append(*text);
  return std::move(out).Build(markup);
}

TextPtr MarkText(const TextPtr& text, bool markup) {
  if (text->markup() == markup) return text;
  TextBuilder out;
  out.Append(*text);
  return std::move(out).Build(markup);
}

absl::StatusOr<TextPtr> PickCharacters(Budget& budget, const TextPtr& text, int64_t from, int64_t step, int64_t count) {
  RETURN_IF_ERROR(budget.SpendScan(text->bytes().size()));
  if (count <= 0) return SliceText(text, 0, 0);
  if (step == 1) return SliceText(text, text->ByteOffset(from), text->ByteOffset(from + count));
  RETURN_IF_ERROR(budget.Spend(count));
  std::vector<size_t> offsets;  // of every character, for texts that are not ASCII
  if (!text->is_ascii()) {
    TextCursor cursor(*text);
    while (cursor.Next()) offsets.push_back(cursor.begin);
    offsets.push_back(text->bytes().size());
  }
  TextBuilder out;
  for (int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<size_t>(from + i * step);
    if (text->is_ascii()) {
      out.Append(*text, index, index + 1);
    } else {
      out.Append(*text, offsets[index], offsets[index + 1]);
    }
  }
  return std::move(out).Build(text->markup());
}

}  // namespace pith::jinja
