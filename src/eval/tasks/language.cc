#include "eval/tasks/language.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

// Sorted by code.
constexpr LanguageCustoms kLanguages[] = {
    {"bn", false,
     "\u09b8\u09ae\u09b8\u09cd\u09af\u09be\u099f\u09bf \u09a7\u09be\u09aa\u09c7 \u09a7\u09be\u09aa\u09c7 \u09b8\u09ae"
     "\u09be\u09a7\u09be\u09a8 \u0995\u09b0\u09c1\u09a8\u0964 \u09b6\u09c7\u09b7 \u09b2\u09be\u0987\u09a8\u09c7 \"\u0989"
     "\u09a4\u09cd\u09a4\u09b0: \" \u09b2\u09bf\u0996\u09c7 \u09b6\u09c1\u09a7\u09c1 \u09b8\u0982\u0996\u09cd\u09af\u09be"
     "\u099f\u09bf \u09b2\u09bf\u0996\u09c1\u09a8\u0964",
     "\u09aa\u09cd\u09b0\u09b6\u09cd\u09a8", "\u0989\u09a4\u09cd\u09a4\u09b0", ""},
    {"de", true, "L\u00f6se die Aufgabe Schritt f\u00fcr Schritt. Schreibe in die letzte Zeile \"Antwort: \" und danach nur die Zahl.",
     "Frage", "Antwort", "der die das und ist wie viele"},
    {"en", false, "Solve the problem step by step. On the last line, write \"Answer: \" and then only the number.", "Question", "Answer",
     "the of and is how many"},
    {"es", true,
     "Resuelve el problema paso a paso. En la \u00faltima l\u00ednea escribe \"Respuesta: \" y despu\u00e9s solo el n"
     "\u00famero.",
     "Pregunta", "Respuesta", "el los las por una que cada"},
    {"fr", true,
     "R\u00e9solvez le probl\u00e8me \u00e9tape par \u00e9tape. Sur la derni\u00e8re ligne, \u00e9crivez \"R\u00e9ponse :"
     " \" puis seulement le nombre.",
     "Question", "R\u00e9ponse", "le les des est une combien et"},
    {"ja", false,
     "\u554f\u984c\u3092\u9806\u3092\u8ffd\u3063\u3066\u89e3\u3044\u3066\u304f\u3060\u3055\u3044\u3002\u6700\u5f8c\u306e"
     "\u884c\u306b\u300c\u7b54\u3048: \u300d\u3068\u66f8\u304d\u3001\u305d\u306e\u5f8c\u306b\u6570\u5b57\u3060\u3051"
     "\u3092\u66f8\u3044\u3066\u304f\u3060\u3055\u3044\u3002",
     "\u554f\u984c", "\u7b54\u3048", ""},
    {"ru", true,
     "\u0420\u0435\u0448\u0438\u0442\u0435 \u0437\u0430\u0434\u0430\u0447\u0443 \u0448\u0430\u0433 \u0437\u0430 \u0448"
     "\u0430\u0433\u043e\u043c. \u0412 \u043f\u043e\u0441\u043b\u0435\u0434\u043d\u0435\u0439 \u0441\u0442\u0440\u043e"
     "\u043a\u0435 \u043d\u0430\u043f\u0438\u0448\u0438\u0442\u0435 \u00ab\u041e\u0442\u0432\u0435\u0442: \u00bb \u0438 "
     "\u043f\u043e\u0441\u043b\u0435 \u044d\u0442\u043e\u0433\u043e \u0442\u043e\u043b\u044c\u043a\u043e \u0447\u0438"
     "\u0441\u043b\u043e.",
     "\u0417\u0430\u0434\u0430\u0447\u0430", "\u041e\u0442\u0432\u0435\u0442", ""},
    {"sw", false, "Tatua tatizo hatua kwa hatua. Kwenye mstari wa mwisho andika \"Jibu: \" kisha namba pekee.", "Swali", "Jibu",
     "ya kwa na wa kila ngapi"},
    {"te", false,
     "\u0c38\u0c2e\u0c38\u0c4d\u0c2f\u0c28\u0c41 \u0c26\u0c36\u0c32\u0c35\u0c3e\u0c30\u0c40\u0c17\u0c3e \u0c2a\u0c30"
     "\u0c3f\u0c37\u0c4d\u0c15\u0c30\u0c3f\u0c02\u0c1a\u0c02\u0c21\u0c3f. \u0c1a\u0c3f\u0c35\u0c30\u0c3f \u0c2a\u0c02"
     "\u0c15\u0c4d\u0c24\u0c3f\u0c32\u0c4b \"\u0c38\u0c2e\u0c3e\u0c27\u0c3e\u0c28\u0c02: \" \u0c05\u0c28\u0c3f \u0c30"
     "\u0c3e\u0c38\u0c3f, \u0c24\u0c30\u0c4d\u0c35\u0c3e\u0c24 \u0c38\u0c02\u0c16\u0c4d\u0c2f\u0c28\u0c41 \u0c2e\u0c3e"
     "\u0c24\u0c4d\u0c30\u0c2e\u0c47 \u0c30\u0c3e\u0c2f\u0c02\u0c21\u0c3f.",
     "\u0c2a\u0c4d\u0c30\u0c36\u0c4d\u0c28", "\u0c38\u0c2e\u0c3e\u0c27\u0c3e\u0c28\u0c02", ""},
    {"th", false,
     "\u0e41\u0e01\u0e49\u0e42\u0e08\u0e17\u0e22\u0e4c\u0e17\u0e35\u0e25\u0e30\u0e02\u0e31\u0e49\u0e19\u0e15\u0e2d\u0e19 "
     "\u0e43\u0e19\u0e1a\u0e23\u0e23\u0e17\u0e31\u0e14\u0e2a\u0e38\u0e14\u0e17\u0e49\u0e32\u0e22\u0e43\u0e2b\u0e49\u0e40"
     "\u0e02\u0e35\u0e22\u0e19 \"\u0e04\u0e33\u0e15\u0e2d\u0e1a: \" \u0e41\u0e25\u0e49\u0e27\u0e15\u0e32\u0e21\u0e14"
     "\u0e49\u0e27\u0e22\u0e15\u0e31\u0e27\u0e40\u0e25\u0e02\u0e40\u0e17\u0e48\u0e32\u0e19\u0e31\u0e49\u0e19",
     "\u0e42\u0e08\u0e17\u0e22\u0e4c", "\u0e04\u0e33\u0e15\u0e2d\u0e1a", ""},
    {"zh", false,
     "\u8bf7\u4e00\u6b65\u4e00\u6b65\u5730\u89e3\u7b54\u8fd9\u9053\u9898\u3002\u5728\u6700\u540e\u4e00\u884c\u5199\""
     "\u7b54\u6848\uff1a\"\uff0c\u7136\u540e\u53ea\u5199\u6570\u5b57\u3002",
     "\u95ee\u9898", "\u7b54\u6848", ""},
};

struct Script {
  char32_t first, last;
  absl::string_view language;
};

// Blocks of scripts that one of the languages writes; Han is decided last, because Japanese uses it too.
constexpr Script kScripts[] = {
    {0x0400, 0x04FF, "ru"}, {0x0980, 0x09FF, "bn"}, {0x0C00, 0x0C7F, "te"},
    {0x0E00, 0x0E7F, "th"}, {0x3040, 0x30FF, "ja"}, {0x4E00, 0x9FFF, "zh"},
};
constexpr int64_t kHanPerKana = 10;  // Japanese prose has fewer

int64_t CountWords(absl::string_view text, absl::string_view words) {
  const std::vector<absl::string_view> wanted = absl::StrSplit(words, ' ', absl::SkipEmpty());
  int64_t count = 0;
  for (const absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \t\r\n.,;:!?()\"'"), absl::SkipEmpty())) {
    count += std::find(wanted.begin(), wanted.end(), absl::AsciiStrToLower(word)) != wanted.end() ? 1 : 0;
  }
  return count;
}

std::string DetectByWords(absl::string_view text) {
  absl::string_view best = "en";
  int64_t most = 0;
  for (const LanguageCustoms& language : kLanguages) {
    const int64_t count = CountWords(text, language.frequent_words);
    if (count > most) {
      most = count;
      best = language.code;
    }
  }
  return std::string(best);
}

}  // namespace

absl::Span<const LanguageCustoms> Languages() { return kLanguages; }

const LanguageCustoms& CustomsOf(absl::string_view code) {
  const auto find = [](absl::string_view wanted) {
    return std::find_if(std::begin(kLanguages), std::end(kLanguages), [&](const LanguageCustoms& row) { return row.code == wanted; });
  };
  const LanguageCustoms* found = find(code);
  return found != std::end(kLanguages) ? *found : *find("en");
}

std::string DetectLanguage(absl::string_view text) {
  std::array<int64_t, std::size(kScripts)> counts{};
  int64_t letters = 0;
  for (size_t position = 0; position < text.size();) {
    const char32_t c = DecodeUtf8(text, &position);
    letters += c >= 0x80 || absl::ascii_isalpha(static_cast<unsigned char>(c)) ? 1 : 0;
    for (size_t s = 0; s < counts.size(); ++s) counts[s] += c >= kScripts[s].first && c <= kScripts[s].last ? 1 : 0;
  }
  const size_t most = std::max_element(counts.begin(), counts.end()) - counts.begin();
  if (2 * counts[most] < letters || counts[most] == 0) return DetectByWords(text);
  const size_t han = counts.size() - 1, kana = han - 1;
  return std::string(most == han && counts[kana] * kHanPerKana > counts[han] ? kScripts[kana].language : kScripts[most].language);
}

}  // namespace pith
