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

// The number directly behind the last "####" that has one there: a heading of markdown begins with the same mark.
std::optional<NumberToken> BehindHashes(const std::u32string& text, const NumberCustoms& customs) {
  const std::u32string mark = U"####", padding = U" \t*$";
  for (size_t at = text.rfind(mark); at != std::u32string::npos; at = at == 0 ? std::u32string::npos : text.rfind(mark, at - 1)) {
    const size_t begin = text.find_first_not_of(padding, at + mark.size());
    const auto token = NextNumber(text, at + mark.size(), customs);
    if (token.has_value() && token->begin <= begin) return token;
  }
  return std::nullopt;
}

// The first number between the braces of the last \boxed{}.
std::optional<NumberToken> InsideBox(const std::u32string& text, const NumberCustoms& customs) {
  const std::u32string mark = U"\\boxed{";
  const size_t at = text.rfind(mark);
  if (at == std::u32string::npos) return std::nullopt;
  const auto token = NextNumber(text, at + mark.size(), customs);
  return token.has_value() && token->begin < text.find('}', at + mark.size()) ? token : std::nullopt;
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
  if (const auto token = BehindHashes(folded, customs); token.has_value()) return token->readings;
  if (const auto token = InsideBox(folded, customs); token.has_value()) return token->readings;
  const std::u32string lower = Lower(folded);
  for (const std::u32string& word : {Lower(FoldDigits(spoken.answer_word)), std::u32string(U"answer")}) {
    const size_t mark = BehindMarker(lower, word);
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
