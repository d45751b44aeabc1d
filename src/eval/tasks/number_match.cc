#include "eval/tasks/number_match.h"

#include <algorithm>

#include "absl/strings/str_replace.h"
#include "eval/tasks/language.h"
#include "eval/tasks/number_scanner.h"

namespace pith {
namespace {

char32_t LowerAscii(char32_t c) { return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c; }

std::u32string Lower(std::u32string text) {
  std::transform(text.begin(), text.end(), text.begin(), LowerAscii);
  return text;
}

// Behind the last `word` that is followed by a colon, with spaces or the asterisks of bold text between; npos when there is none.
size_t BehindMarker(const std::u32string& text, const std::u32string& word) {
  for (size_t at = text.rfind(word); at != std::u32string::npos; at = at == 0 ? std::u32string::npos : text.rfind(word, at - 1)) {
    size_t end = at + word.size();
    while (end < text.size() && (text[end] == ' ' || text[end] == '*')) ++end;
    if (end < text.size() && text[end] == ':') return end + 1;
  }
  return std::u32string::npos;
}

size_t BehindLast(const std::u32string& text, const std::u32string& mark) {
  const size_t at = text.rfind(mark);
  return at == std::u32string::npos ? at : at + mark.size();
}

}  // namespace

std::optional<CanonicalNumber> ParseReferenceNumber(absl::string_view text) {
  const std::u32string folded = FoldDigits(text);
  const auto token = NextNumber(folded, 0, {});
  if (!token.has_value()) return std::nullopt;
  const auto is_padding = [](char32_t c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '$'; };
  if (!std::all_of(folded.begin() + token->end, folded.end(), is_padding)) return std::nullopt;
  if (!std::all_of(folded.begin(), folded.begin() + token->begin, is_padding)) return std::nullopt;
  return token->readings.front();
}

std::vector<CanonicalNumber> FinalNumber(absl::string_view text, absl::string_view language) {
  // What LaTeX writes inside numbers: 1{,}000, 1\,000 and \$5.
  const std::string plain = absl::StrReplaceAll(text, {{"{,}", ","}, {"\\,", ""}, {"\\!", ""}, {"\\$", "$"}});
  const std::u32string folded = FoldDigits(plain);
  const LanguageCustoms& spoken = CustomsOf(language);
  const NumberCustoms customs{.decimal_comma = spoken.decimal_comma, .myriads = spoken.code == "ja" || spoken.code == "zh"};
  const std::u32string lower = Lower(folded);
  const size_t marks[] = {BehindLast(folded, U"####"), BehindLast(folded, U"\\boxed{"),
                          BehindMarker(lower, Lower(FoldDigits(spoken.answer_word))), BehindMarker(lower, U"answer")};
  for (const size_t mark : marks) {
    if (mark == std::u32string::npos) continue;
    if (const auto token = NextNumber(folded, mark, customs); token.has_value()) return token->readings;
  }
  std::vector<CanonicalNumber> last;
  for (auto token = NextNumber(folded, 0, customs); token.has_value(); token = NextNumber(folded, token->end, customs)) {
    last = token->readings;
  }
  return last;
}

}  // namespace pith
