#include "tokenizer/pretoken_scanner.h"

#include <cstdint>
#include <limits>

#include "tokenizer/unicode_class.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

constexpr uint8_t kLetterNumberSpace = kClassLetter | kClassNumber | kClassSpace;

// One look at a text: the class and the end of the code point at a position. At the end of the text the class is `kNone`.
struct Peek {
  static constexpr uint8_t kNone = 0x80;
  uint8_t classes = kNone;
  size_t end = 0;
  bool Is(uint8_t wanted) const { return (classes & wanted) != 0; }
  bool IsOther() const { return (classes & (kLetterNumberSpace | kNone)) == 0; }  // [^\s\p{L}\p{N}]
};

Peek PeekAt(const uint8_t* table, absl::string_view text, size_t position) {
  if (position >= text.size()) return {Peek::kNone, position};
  const char32_t c = DecodeUtf8(text, &position);
  return {table[c], position};
}

// End of the run of code points with any of `wanted`, from `position`; at most `limit` of them.
size_t RunOf(const uint8_t* table, absl::string_view text, size_t position, uint8_t wanted,
             size_t limit = std::numeric_limits<size_t>::max()) {
  for (; limit > 0; --limit) {
    const Peek next = PeekAt(table, text, position);
    if (!next.Is(wanted)) break;
    position = next.end;
  }
  return position;
}

size_t RunOfOthers(const uint8_t* table, absl::string_view text, size_t position) {
  for (;;) {
    const Peek next = PeekAt(table, text, position);
    if (!next.IsOther()) return position;
    position = next.end;
  }
}

bool IsNewline(char c) { return c == '\r' || c == '\n'; }

// Bytes of one of 's 't 're 've 'm 'll 'd at `begin` (an apostrophe), or 0.
size_t ContractionLength(absl::string_view text, size_t begin, bool ignore_case) {
  const auto letter = [&](size_t offset) -> char {
    if (begin + offset >= text.size()) return '\0';
    const char c = text[begin + offset];
    return ignore_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  switch (letter(1)) {
    case 's':
    case 't':
    case 'm':
    case 'd': return 2;
    case 'r':
    case 'v': return letter(2) == 'e' ? 3 : 0;
    case 'l': return letter(2) == 'l' ? 3 : 0;
    case '\xC5':  // U+017F, the long s, is an s when case is ignored
      return ignore_case && letter(2) == '\xBF' ? 3 : 0;
    default: return 0;
  }
}

// \s+(?!\S)|\s+ at `begin`, a space: the run, less its last character when something follows it and something is left.
size_t SpaceRun(const uint8_t* table, absl::string_view text, size_t begin) {
  const size_t end = RunOf(table, text, begin, kClassSpace);
  if (end == text.size()) return end;
  const size_t last = PreviousUtf8(text, end);
  return last > begin ? last : end;
}

// The pattern of Llama 3 and Qwen2; they differ in how many digits stay together.
size_t ScanWithNewlines(absl::string_view text, size_t begin, size_t max_digits) {
  const uint8_t* table = UnicodeClassTable();
  const char first_byte = text[begin];
  if (first_byte == '\'') {
    if (const size_t length = ContractionLength(text, begin, true); length > 0) return begin + length;
  }
  const Peek first = PeekAt(table, text, begin);
  if (first.Is(kClassLetter)) return RunOf(table, text, first.end, kClassLetter);
  if (first.Is(kClassNumber)) return RunOf(table, text, begin, kClassNumber, max_digits);
  const Peek second = PeekAt(table, text, first.end);
  if (!IsNewline(first_byte) && second.Is(kClassLetter)) return RunOf(table, text, second.end, kClassLetter);
  if (first.IsOther() || (first_byte == ' ' && second.IsOther())) {
    size_t end = RunOfOthers(table, text, first.end);
    while (end < text.size() && IsNewline(text[end])) ++end;
    return end;
  }
  // Only white space is left: up to its last newline, else as in GPT-2.
  const size_t run_end = RunOf(table, text, begin, kClassSpace);
  const size_t last_newline = text.substr(begin, run_end - begin).find_last_of("\r\n");
  return last_newline != absl::string_view::npos ? begin + last_newline + 1 : SpaceRun(table, text, begin);
}

}  // namespace

size_t ScanGpt2(absl::string_view text, size_t begin) {
  const uint8_t* table = UnicodeClassTable();
  if (text[begin] == '\'') {
    if (const size_t length = ContractionLength(text, begin, false); length > 0) return begin + length;
  }
  const size_t start = text[begin] == ' ' ? begin + 1 : begin;  // the optional space
  const Peek next = PeekAt(table, text, start);
  if (next.Is(kClassLetter)) return RunOf(table, text, next.end, kClassLetter);
  if (next.Is(kClassNumber)) return RunOf(table, text, next.end, kClassNumber);
  if (next.IsOther()) return RunOfOthers(table, text, next.end);
  return SpaceRun(table, text, begin);
}

size_t ScanLlama3(absl::string_view text, size_t begin) { return ScanWithNewlines(text, begin, 3); }

size_t ScanQwen2(absl::string_view text, size_t begin) { return ScanWithNewlines(text, begin, 1); }

PretokenScanner FindPretokenScanner(absl::string_view pattern) {
  struct Row {
    const char* pattern;
    PretokenScanner scanner;
  };
  static constexpr Row kRows[] = {{kGpt2Pattern, ScanGpt2}, {kLlama3Pattern, ScanLlama3}, {kQwen2Pattern, ScanQwen2}};
  for (const Row& row : kRows) {
    if (pattern == row.pattern) return row.scanner;
  }
  return nullptr;
}

}  // namespace pith
