// Which language a text is written in, among those of MGSM, and how that language writes numbers and asks for them.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace pith {

struct LanguageCustoms {
  absl::string_view code;            // ISO 639-1
  bool decimal_comma;                // 3,5 is three and a half; a point or a space separates thousands
  absl::string_view instruction;     // of a mathematics problem, after the question: reason first, the number last, after `answer_word`
  absl::string_view question_word;   // "Question"
  absl::string_view answer_word;     // "Answer": what the last line begins with
  absl::string_view frequent_words;  // separated by spaces; for languages in Latin letters
};

// bn de en es fr ja ru sw te th zh.
absl::Span<const LanguageCustoms> Languages();
// The row of a code; English for any other.
const LanguageCustoms& CustomsOf(absl::string_view code);

// The code of the language of `text` (valid UTF-8): by script, then by frequent words; "en" when nothing speaks for another.
std::string DetectLanguage(absl::string_view text);

}  // namespace pith
