#include "eval/tasks/likelihood_score.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/status.h"
#include "tokenizer/unicode_class.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

// The first run of letters, digits and marks, with what joins them: apostrophes and hyphens inside.
std::string FirstWord(absl::string_view text) {
  const std::string valid = ReplaceInvalidUtf8(text);
  std::string word, joint;
  for (size_t position = 0; position < valid.size();) {
    const char32_t c = DecodeUtf8(valid, &position);
    if (HasUnicodeClass(c, kClassWord)) {
      word += joint;
      joint.clear();
      AppendUtf8(c, &word);
    } else if (!word.empty()) {
      const bool joins = joint.empty() && (c == '\'' || c == '-' || c == 0x2019);
      if (!joins) break;
      AppendUtf8(c, &joint);
    }
  }
  return word;
}

// Of valid UTF-8: bytes that begin a character.
double CountCharacters(absl::string_view text) {
  return static_cast<double>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// The first of the largest values offered.
struct Largest {
  int64_t index = -1;
  double value = 0;

  void Offer(int64_t i, double offered) {
    if (index >= 0 && !(offered > value)) return;
    index = i;
    value = offered;
  }
};

}  // namespace

absl::StatusOr<ChoiceScore> ScoreChoice(const TaskItem& item, absl::Span<const ContinuationLikelihood> likelihoods) {
  if (item.match != MatchKind::kChoice) return BugError(item.id, ": expected a multiple choice, found ", MatchName(item.match));
  const auto n = static_cast<int64_t>(item.choices.size());
  if (static_cast<int64_t>(likelihoods.size()) != n || n < 2 || item.gold < 0 || item.gold >= n) {
    return BugError(item.id, ": expected ", n, " likelihoods, at least 2, and one of them gold, found ", likelihoods.size(), ", gold ",
                    item.gold);
  }
  ChoiceScore score;
  Largest sum, per_character, per_byte;
  double best_other = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < n; ++i) {
    const double value = likelihoods[i].log_probability;
    if (std::isnan(value) || item.choices[i].empty()) {
      return BugError(item.id, ": choice ", i, ": expected a text and its log-probability, found ", value);
    }
    sum.Offer(i, value);
    per_character.Offer(i, value / CountCharacters(item.choices[i]));
    per_byte.Offer(i, value / static_cast<double>(item.choices[i].size()));
    if (i != item.gold) best_other = std::max(best_other, value);
  }
  score.picked = sum.index;
  score.picked_per_character = per_character.index;
  score.picked_per_byte = per_byte.index;
  score.correct = score.picked == item.gold;
  score.correct_per_character = score.picked_per_character == item.gold;
  score.correct_per_byte = score.picked_per_byte == item.gold;
  score.margin = likelihoods[item.gold].log_probability - best_other;
  return score;
}

ContinuationSummary SummarizeContinuations(absl::Span<const ContinuationLikelihood> likelihoods) {
  ContinuationSummary summary{.n = static_cast<int64_t>(likelihoods.size())};
  if (likelihoods.empty()) return summary;
  double sum = 0;
  int64_t greedy = 0;
  for (const ContinuationLikelihood& likelihood : likelihoods) {
    sum += likelihood.log_probability;
    greedy += likelihood.greedy ? 1 : 0;
  }
  const auto n = static_cast<double>(summary.n);
  summary.accuracy = static_cast<double>(greedy) / n;
  summary.perplexity = std::exp(-sum / n);
  return summary;
}

bool FirstWordMatches(absl::string_view text, absl::string_view word) {
  const std::string wanted = FirstWord(word);
  return !wanted.empty() && FirstWord(text) == wanted;
}

}  // namespace pith
