#include "tokenizer/pre_tokenizer.h"

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/pretoken_scanner.h"
#include "tokenizer/unicode_class.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

// Cuts `text` where the class of its characters changes; a character is a match when its class has a bit of `classes`.
// With `single`, every match is a piece of its own.
std::vector<TextPiece> PiecesByClass(absl::string_view text, uint8_t classes, bool single) {
  std::vector<TextPiece> pieces;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    const bool is_match = HasUnicodeClass(DecodeUtf8(text, &end), classes);
    if (pieces.empty() || pieces.back().is_match != is_match || (is_match && single)) {
      pieces.push_back({begin, end, is_match});
    } else {
      pieces.back().end = end;
    }
  }
  return pieces;
}

// \w+|[^\w\s]+, what lies between removed.
std::vector<TextPiece> WordsAndSymbols(absl::string_view text) {
  std::vector<TextPiece> kept;
  uint8_t previous_kind = kClassSpace;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    const uint8_t classes = UnicodeClassTable()[DecodeUtf8(text, &end)];
    const uint8_t kind = classes & kClassWord ? kClassWord : classes & kClassSpace;
    if (kind != kClassSpace) {
      if (!kept.empty() && kind == previous_kind) {
        kept.back().end = end;
      } else {
        kept.push_back({begin, end, true});
      }
    }
    previous_kind = kind;
  }
  return kept;
}

}  // namespace

absl::StatusOr<PreTokenizer> PreTokenizer::Create(const std::vector<PreTokenizerStep>& steps, bool raw_bytes) {
  PreTokenizer result;
  result.raw_bytes_ = raw_bytes;
  for (const PreTokenizerStep& step : steps) {
    CompiledStep compiled = {step, {}};
    if (step.kind == PreTokenizerStep::kSplit) {
      ASSIGN_OR_RETURN(compiled.pattern, SplitPattern::Create(step.pattern));
    }
    result.steps_.push_back(std::move(compiled));
  }
  return result;
}

absl::Status PreTokenizer::Split(absl::string_view text, bool at_text_start, EmitWord emit) const {
  return Run(0, text, at_text_start, emit);
}

absl::Status PreTokenizer::Run(size_t index, absl::string_view text, bool at_text_start, EmitWord emit) const {
  if (text.empty()) return absl::OkStatus();
  if (index == steps_.size()) {
    emit(text);
    return absl::OkStatus();
  }
  const PreTokenizerStep& step = steps_[index].step;
  switch (step.kind) {
    case PreTokenizerStep::kSplit: return RunSplit(index, text, at_text_start, emit);
    case PreTokenizerStep::kByteLevel: return RunByteLevel(index, text, at_text_start, emit);
    case PreTokenizerStep::kMetaspace: return RunMetaspace(index, text, at_text_start, emit);
    case PreTokenizerStep::kDigits:
      return RunPieces(index, PiecesByClass(text, kClassNumber, step.individual_digits), text, at_text_start, emit);
    case PreTokenizerStep::kWhitespaceSplit:
      return RunPieces(index, ApplySplitBehavior(PiecesByClass(text, kClassSpace, false), SplitBehavior::kRemoved, false), text,
                       at_text_start, emit);
    case PreTokenizerStep::kWhitespace: return RunPieces(index, WordsAndSymbols(text), text, at_text_start, emit);
  }
  return BugError("pre-tokenizer: expected a known step, found ", static_cast<int>(step.kind));
}

absl::Status PreTokenizer::RunPieces(size_t index, const std::vector<TextPiece>& pieces, absl::string_view text, bool at_text_start,
                                     EmitWord emit) const {
  for (const TextPiece& piece : pieces) {
    RETURN_IF_ERROR(Run(index + 1, text.substr(piece.begin, piece.end - piece.begin), at_text_start && piece.begin == 0, emit));
  }
  return absl::OkStatus();
}

absl::Status PreTokenizer::RunSplit(size_t index, absl::string_view text, bool at_text_start, EmitWord emit) const {
  const auto& [step, pattern] = steps_[index];
  if (const PretokenScanner scan = pattern.scanner(); scan != nullptr && step.behavior == SplitBehavior::kIsolated) {
    for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
      end = scan(text, begin);
      RETURN_IF_ERROR(Run(index + 1, text.substr(begin, end - begin), at_text_start && begin == 0, emit));
    }
    return absl::OkStatus();
  }
  std::vector<TextPiece> pieces;
  RETURN_IF_ERROR(pattern.FindPieces(text, &pieces));
  return RunPieces(index, ApplySplitBehavior(pieces, step.behavior, step.invert), text, at_text_start, emit);
}

absl::Status PreTokenizer::RunByteLevel(size_t index, absl::string_view text, bool at_text_start, EmitWord emit) const {
  const PreTokenizerStep& step = steps_[index].step;
  std::string prefixed;
  if (step.add_prefix_space && text[0] != ' ') {
    prefixed = absl::StrCat(" ", text);
    text = prefixed;
  }
  const bool keep_bytes = raw_bytes_ && index + 1 == steps_.size();
  std::string alphabet_text;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    end = step.use_regex ? ScanGpt2(text, begin) : text.size();
    absl::string_view piece = text.substr(begin, end - begin);
    if (!keep_bytes) {
      alphabet_text.clear();
      AppendByteLevelText(piece, &alphabet_text);
      piece = alphabet_text;
    }
    RETURN_IF_ERROR(Run(index + 1, piece, at_text_start && begin == 0, emit));
  }
  return absl::OkStatus();
}

absl::Status PreTokenizer::RunMetaspace(size_t index, absl::string_view text, bool at_text_start, EmitWord emit) const {
  const PreTokenizerStep& step = steps_[index].step;
  std::string replaced = absl::StrReplaceAll(text, {{" ", step.replacement}});
  const bool wanted = step.prepend == PreTokenizerStep::kAlways || (step.prepend == PreTokenizerStep::kFirst && at_text_start);
  if (wanted && !absl::StartsWith(replaced, step.replacement)) replaced.insert(0, step.replacement);
  const absl::string_view view = replaced;
  if (!step.split) return Run(index + 1, view, at_text_start, emit);
  // Before every replacement: MergedWithNext.
  for (size_t begin = 0, end = 0; begin < view.size(); begin = end) {
    end = view.find(step.replacement, begin + 1);
    if (end == absl::string_view::npos) end = view.size();
    RETURN_IF_ERROR(Run(index + 1, view.substr(begin, end - begin), at_text_start && begin == 0, emit));
  }
  return absl::OkStatus();
}

}  // namespace pith
