#include "tokenizer/split_pattern.h"

#include <utility>

#include "base/status.h"
#include "tokenizer/regex_translation.h"

namespace pith {
namespace {

// A match may backtrack over a megabyte of white space, but not quadratically.
constexpr Regex::Options kOptions = {.unicode = true,
                                     .multiline = true,
                                     .jit = true,
                                     .max_bytes = 256 << 10,
                                     .max_steps = 20'000'000,
                                     .max_depth = 2'000'000,
                                     .max_heap_bytes = 256u << 20};
constexpr size_t kMaxPatternBytes = 64 << 10;

}  // namespace

absl::StatusOr<SplitPattern> SplitPattern::Create(const TextPattern& pattern, bool use_scanner) {
  SplitPattern result;
  if (pattern.text.empty()) return BadFileError("pattern: expected a text, found ''");
  if (!pattern.is_regex) {
    result.literal_ = pattern.text;
    return result;
  }
  if (use_scanner) result.scanner_ = FindPretokenScanner(pattern.text);
  if (result.scanner_ != nullptr) return result;
  if (pattern.text.size() > kMaxPatternBytes) {
    return BadFileError("pattern: expected at most ", kMaxPatternBytes, " bytes, found ", pattern.text.size());
  }
  ASSIGN_OR_RETURN(const std::string translated, TranslateOnigurumaPattern(pattern.text));
  absl::StatusOr<Regex> regex = Regex::Compile(translated, kOptions);
  if (!regex.ok()) return NotSupportedError("pattern '", Printable(pattern.text), "': ", regex.status().message());
  result.regex_ = *std::move(regex);
  return result;
}

absl::Status SplitPattern::FindPieces(absl::string_view text, std::vector<TextPiece>* pieces) const {
  pieces->clear();
  if (scanner_ != nullptr) {
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = scanner_(text, begin);
      pieces->push_back({begin, end, true});
      begin = end;
    }
    return absl::OkStatus();
  }
  if (regex_.has_value()) return FindRegexPieces(text, pieces);
  size_t begin = 0;
  for (;;) {
    const size_t match = text.find(literal_, begin);
    const size_t gap_end = match == absl::string_view::npos ? text.size() : match;
    if (gap_end > begin) pieces->push_back({begin, gap_end, false});
    if (match == absl::string_view::npos) return absl::OkStatus();
    begin = match + literal_.size();
    pieces->push_back({match, begin, true});
  }
}

absl::Status SplitPattern::FindRegexPieces(absl::string_view text, std::vector<TextPiece>* pieces) const {
  size_t search = 0;     // where the next search starts
  size_t covered = 0;    // end of the last piece
  bool matched = false;  // an empty match right behind another match is none
  while (search <= text.size()) {
    const absl::StatusOr<std::optional<Regex::Match>> match = regex_->Find(text, search);
    if (!match.ok()) return UsageError("pattern: ", match.status().message());
    if (!match->has_value()) break;
    const auto [begin, end] = **match;
    if (begin == end && matched && end == covered) {
      do {
        ++search;
      } while (search < text.size() && (static_cast<uint8_t>(text[search]) & 0xC0) == 0x80);
      continue;
    }
    if (begin > covered) pieces->push_back({covered, begin, false});
    pieces->push_back({begin, end, true});
    search = covered = end;
    matched = true;
  }
  if (covered < text.size()) pieces->push_back({covered, text.size(), false});
  return absl::OkStatus();
}

namespace {

// Joins a match to the piece before it, walking `pieces` in either direction. A match next to a match stands alone.
void MergeMatches(std::vector<TextPiece>* pieces, bool forwards) {
  std::vector<TextPiece> merged;
  bool previous_match = false;
  for (size_t i = 0; i < pieces->size(); ++i) {
    const TextPiece& piece = (*pieces)[forwards ? i : pieces->size() - 1 - i];
    if (piece.is_match && !previous_match && !merged.empty()) {
      (forwards ? merged.back().end : merged.back().begin) = forwards ? piece.end : piece.begin;
    } else {
      merged.push_back(piece);
    }
    previous_match = piece.is_match;
  }
  if (!forwards) std::reverse(merged.begin(), merged.end());
  *pieces = std::move(merged);
}

void JoinNeighbours(std::vector<TextPiece>* pieces) {
  std::vector<TextPiece> joined;
  for (const TextPiece& piece : *pieces) {
    if (!joined.empty() && joined.back().is_match == piece.is_match) {
      joined.back().end = piece.end;
    } else {
      joined.push_back(piece);
    }
  }
  *pieces = std::move(joined);
}

}  // namespace

std::vector<TextPiece> ApplySplitBehavior(const std::vector<TextPiece>& pieces, SplitBehavior behavior, bool invert) {
  std::vector<TextPiece> result = pieces;
  if (invert) {
    for (TextPiece& piece : result) piece.is_match = !piece.is_match;
  }
  switch (behavior) {
    case SplitBehavior::kIsolated: break;
    case SplitBehavior::kRemoved:
      result.erase(std::remove_if(result.begin(), result.end(), [](const TextPiece& piece) { return piece.is_match; }), result.end());
      break;
    case SplitBehavior::kMergedWithPrevious: MergeMatches(&result, /*forwards=*/true); break;
    case SplitBehavior::kMergedWithNext: MergeMatches(&result, /*forwards=*/false); break;
    case SplitBehavior::kContiguous: JoinNeighbours(&result); break;
  }
  return result;
}

}  // namespace pith
