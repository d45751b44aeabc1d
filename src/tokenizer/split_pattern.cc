#include "tokenizer/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <utility>

#include "base/status.h"
#include "tokenizer/regex_translation.h"

namespace pith {
namespace {

// A match may backtrack over a megabyte of white space, but not quadratically.
constexpr uint32_t kMatchLimit = 20'000'000;
constexpr uint32_t kDepthLimit = 2'000'000;
constexpr uint32_t kHeapLimitKib = 256 << 10;
constexpr size_t kMaxPatternBytes = 64 << 10;

std::string PcreMessage(int code) {
  unsigned char buffer[256] = {};
  pcre2_get_error_message(code, buffer, sizeof(buffer));
  return reinterpret_cast<const char*>(buffer);
}

PCRE2_SPTR AsPcre(absl::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

struct MatchDataDeleter {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

}  // namespace

struct SplitPattern::CompiledRegex {
  std::string source;
  pcre2_code* code = nullptr;
  pcre2_match_context* context = nullptr;

  CompiledRegex() = default;
  CompiledRegex(const CompiledRegex&) = delete;
  CompiledRegex& operator=(const CompiledRegex&) = delete;
  ~CompiledRegex() {
    pcre2_code_free(code);
    pcre2_match_context_free(context);
  }

  // pcre2_match from `offset`; without JIT when its small machine stack does not suffice. Returns PCRE2's code.
  int Match(absl::string_view text, size_t offset, pcre2_match_data* data) const {
    const uint32_t options = PCRE2_NO_UTF_CHECK;
    const int code_found = pcre2_match(code, AsPcre(text), text.size(), offset, options, data, context);
    if (code_found != PCRE2_ERROR_JIT_STACKLIMIT) return code_found;
    return pcre2_match(code, AsPcre(text), text.size(), offset, options | PCRE2_NO_JIT, data, context);
  }
};

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
  auto regex = std::make_shared<CompiledRegex>();
  regex->source = pattern.text;
  int error = 0;
  size_t error_offset = 0;
  regex->code = pcre2_compile(AsPcre(translated), translated.size(), PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                              &error, &error_offset, nullptr);
  if (regex->code == nullptr) {
    return NotSupportedError("pattern '", Printable(pattern.text),
                             "': expected a regular expression PCRE2 knows, found: ", PcreMessage(error), " at byte ", error_offset);
  }
  pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE);  // on failure the interpreter runs it
  regex->context = pcre2_match_context_create(nullptr);
  if (regex->context == nullptr) return OutOfMemoryError("pattern: expected memory for a match context, found none");
  pcre2_set_match_limit(regex->context, kMatchLimit);
  pcre2_set_depth_limit(regex->context, kDepthLimit);
  pcre2_set_heap_limit(regex->context, kHeapLimitKib);
  result.regex_ = std::move(regex);
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
  if (regex_ != nullptr) return FindRegexPieces(text, pieces);
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
  const std::unique_ptr<pcre2_match_data, MatchDataDeleter> data(pcre2_match_data_create(1, nullptr));
  if (data == nullptr) return OutOfMemoryError("pattern: expected memory for a match, found none");
  const size_t* offsets = pcre2_get_ovector_pointer(data.get());
  size_t search = 0;     // where the next search starts
  size_t covered = 0;    // end of the last piece
  bool matched = false;  // an empty match right behind another match is none
  while (search <= text.size()) {
    const int code = regex_->Match(text, search, data.get());
    if (code == PCRE2_ERROR_NOMATCH) break;
    if (code < 0) {
      return UsageError("pattern '", Printable(regex_->source), "': expected a match within the limits, found: ", PcreMessage(code),
                        " at byte ", search, " of a text of ", text.size());
    }
    const size_t begin = offsets[0], end = offsets[1];
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
