// Comparison of generated text with a reference.
//
// Both sides are normalised: malformed UTF-8 replaced, composed (NFC), runs of white space made one space, none at the ends; with
// ignore_case also case-folded.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/regex.h"

namespace pith {

std::string NormalizeAnswer(absl::string_view text, bool ignore_case);

// Whether the whole text is one of the answers; whether one of them occurs in it; the share of them that occur in it (0 without any).
bool MatchesExactly(absl::string_view text, const std::vector<std::string>& answers, bool ignore_case);
bool ContainsAny(absl::string_view text, const std::vector<std::string>& answers, bool ignore_case);
double ShareContained(absl::string_view text, const std::vector<std::string>& answers, bool ignore_case);

// A regular expression (PCRE2, Unicode) searched for in text that is not normalised, but for malformed UTF-8. Immutable, thread-safe.
class AnswerPattern {
 public:
  // Errors: kDataLoss with the reason and its place.
  static absl::StatusOr<AnswerPattern> Parse(absl::string_view expression, bool ignore_case);
  // Errors: kDataLoss when the search passes its limit of backtracking steps.
  absl::StatusOr<bool> FoundIn(absl::string_view text) const;

 private:
  explicit AnswerPattern(Regex regex) : regex_(std::move(regex)) {}

  Regex regex_;
};

}  // namespace pith
