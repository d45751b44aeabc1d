#include "tokenizer/template_text.h"

#include <string.h>  // memmem

#include <algorithm>
#include <utility>

#include "tokenizer/template_unicode.h"
#include "tokenizer/utf8.h"

namespace pith::jinja {

Text::Text(std::string bytes, TextRuns runs, bool markup)
    : bytes_(std::move(bytes)), runs_(std::move(runs)), length_(CountUtf8(bytes_)), markup_(markup) {}

size_t Text::ByteOffset(int64_t index) const {
  if (is_ascii()) return static_cast<size_t>(index);
  if (index == length_) return bytes_.size();
  size_t offset = 0;
  for (int64_t i = 0; i < index; ++i) DecodeUtf8(bytes_, &offset);
  return offset;
}

int64_t Text::CodePointIndex(size_t offset) const {
  return is_ascii() ? static_cast<int64_t>(offset) : CountUtf8(absl::string_view(bytes_).substr(0, offset));
}

void TextBuilder::ExtendRun(size_t end, bool user) {
  if (!runs_.empty() && runs_.back().user == user) {
    runs_.back().end = end;
  } else {
    runs_.push_back({end, user});
  }
}

void TextBuilder::Append(absl::string_view bytes, bool user) {
  if (bytes.empty()) return;
  bytes_.append(bytes.data(), bytes.size());
  ExtendRun(bytes_.size(), user);
}

void TextBuilder::Append(const Text& text, size_t begin, size_t end) {
  if (begin >= end) return;
  const size_t base = bytes_.size();
  bytes_.append(text.bytes(), begin, end - begin);
  auto run = std::upper_bound(text.runs().begin(), text.runs().end(), begin, [](size_t at, const TextRun& r) { return at < r.end; });
  for (; run != text.runs().end(); ++run) {
    ExtendRun(base + std::min(run->end, end) - begin, run->user);
    if (run->end >= end) break;
  }
}

void TextBuilder::AppendCodePoint(char32_t code_point, bool user) {
  AppendUtf8(code_point, &bytes_);
  ExtendRun(bytes_.size(), user);
}

TextPtr TextBuilder::Build(bool markup) && { return std::make_shared<const Text>(std::move(bytes_), std::move(runs_), markup); }

bool TextCursor::Next() {
  if (end >= text_.bytes().size()) return false;
  begin = end;
  code_point = DecodeUtf8(text_.bytes(), &end);
  while (text_.runs()[run_].end <= begin) ++run_;
  user = text_.runs()[run_].user;
  return true;
}

TextPtr MakeText(absl::string_view bytes, bool user) {
  TextBuilder builder;
  builder.Append(bytes, user);
  return std::move(builder).Build();
}

TextPtr SliceText(const TextPtr& text, size_t begin, size_t end) {
  if (begin == 0 && end == text->bytes().size()) return text;
  TextBuilder builder;
  builder.Append(*text, begin, end);
  return std::move(builder).Build(text->markup());
}

size_t FindBytes(absl::string_view haystack, absl::string_view needle, size_t begin, size_t end) {
  if (begin > end || needle.size() > end - begin) return absl::string_view::npos;
  if (needle.empty()) return begin;
  // glibc's two-way search: linear for every needle.
  const void* hit = memmem(haystack.data() + begin, end - begin, needle.data(), needle.size());
  return hit == nullptr ? absl::string_view::npos : static_cast<size_t>(static_cast<const char*>(hit) - haystack.data());
}

size_t FindLastBytes(absl::string_view haystack, absl::string_view needle, size_t begin, size_t end) {
  if (begin > end || needle.size() > end - begin) return absl::string_view::npos;
  if (needle.empty()) return end;
  // The first hit of the reversed needle in the reversed text, for the same guarantee.
  const std::string reversed_text(haystack.rbegin() + (haystack.size() - end), haystack.rbegin() + (haystack.size() - begin));
  const std::string reversed_needle(needle.rbegin(), needle.rend());
  const size_t hit = FindBytes(reversed_text, reversed_needle, 0, reversed_text.size());
  return hit == absl::string_view::npos ? hit : end - hit - needle.size();
}

}  // namespace pith::jinja
