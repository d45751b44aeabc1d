// The `pattern` of a tokenizer.json component ({"String": ...} or {"Regex": ...}), ready to find its matches.
//
// A String is searched literally. A Regex that is one of the published ones runs as a hand-written scanner in linear time; any other
// runs in PCRE2 (JIT when there is one) with limits on backtracking, depth and heap, after translation from Oniguruma syntax.
// Thread-safe after creation; copies share the compiled pattern.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/regex.h"
#include "tokenizer/pretoken_scanner.h"
#include "tokenizer/tokenizer_definition.h"

namespace pith {

// Bytes [begin, end) of a text.
struct TextPiece {
  size_t begin = 0, end = 0;
  bool is_match = false;
};

class SplitPattern {
 public:
  // `use_scanner` = false forces PCRE2, as the oracle of the scanners.
  // Errors: kUnimplemented (a construct PCRE2 or the translation does not know), kDataLoss (bad syntax, an empty string).
  static absl::StatusOr<SplitPattern> Create(const TextPattern& pattern, bool use_scanner = true);

  // Replaces *pieces by the matches in `text` and what lies between them, in order; together they cover it.
  // Pieces are not empty, except that an empty match leaves a cut. Errors: kInvalidArgument when a match needs more than the limits.
  absl::Status FindPieces(absl::string_view text, std::vector<TextPiece>* pieces) const;

  PretokenScanner scanner() const { return scanner_; }  // nullptr unless one is used

 private:
  absl::Status FindRegexPieces(absl::string_view text, std::vector<TextPiece>* pieces) const;

  std::string literal_;
  PretokenScanner scanner_ = nullptr;
  std::optional<Regex> regex_;
};

// What a Split makes of matches and gaps: pieces to keep, in order.
std::vector<TextPiece> ApplySplitBehavior(const std::vector<TextPiece>& pieces, SplitBehavior behavior, bool invert);

}  // namespace pith
