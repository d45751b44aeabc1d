#include "tokenizer/normalizer.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/status.h"
#include "tokenizer/unicode_class.h"
#include "tokenizer/utf8.h"

namespace pith {
namespace {

int CombiningClass(utf8proc_int32_t c) { return static_cast<int>(utf8proc_get_property(c)->combining_class); }

// Whether composing (or decomposing) leaves the text as it is, by a bound on its code points: nothing below U+0300 composes with
// anything but what is above, and only ASCII never decomposes.
bool IsInert(absl::string_view text, bool compatibility, bool compose) {
  const uint8_t limit = compose && !compatibility ? 0xCC : 0x80;  // first byte of U+0300 is 0xCC
  return std::all_of(text.begin(), text.end(), [&](char byte) { return static_cast<uint8_t>(byte) < limit; });
}

std::vector<utf8proc_int32_t> Decompose(absl::string_view text, bool compatibility) {
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE | (compatibility ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> result;
  result.reserve(text.size());
  utf8proc_int32_t buffer[32];  // the longest decomposition is 18 code points (U+FDFA)
  for (size_t position = 0; position < text.size();) {
    const auto c = static_cast<utf8proc_int32_t>(DecodeUtf8(text, &position));
    if (c < 0x80) {
      result.push_back(c);
      continue;
    }
    const utf8proc_ssize_t length = utf8proc_decompose_char(c, buffer, 32, options, nullptr);
    if (length < 0 || length > 32) {
      result.push_back(c);
    } else {
      result.insert(result.end(), buffer, buffer + length);
    }
  }
  return result;
}

// Sorts every run of combining marks by combining class, equals staying in order.
void OrderMarks(std::vector<utf8proc_int32_t>* code_points) {
  const auto end = code_points->end();
  for (auto run = code_points->begin(); run != end;) {
    if (CombiningClass(*run) == 0) {
      ++run;
      continue;
    }
    const auto run_end = std::find_if(run, end, [](utf8proc_int32_t c) { return CombiningClass(c) == 0; });
    std::stable_sort(run, run_end, [](utf8proc_int32_t a, utf8proc_int32_t b) { return CombiningClass(a) < CombiningClass(b); });
    run = run_end;
  }
}

// The simple lower case of every character; U+0130 becomes "i" and a dot above, as in SpecialCasing.txt.
std::string Lowercase(absl::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t position = 0; position < text.size();) {
    const char32_t c = DecodeUtf8(text, &position);
    if (c == 0x130) {
      result += "i\xCC\x87";
    } else {
      AppendUtf8(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))), &result);
    }
  }
  return result;
}

absl::string_view Strip(absl::string_view text, bool left, bool right) {
  while (left && !text.empty()) {
    size_t position = 0;
    if (!HasUnicodeClass(DecodeUtf8(text, &position), kClassSpace)) break;
    text.remove_prefix(position);
  }
  while (right && !text.empty()) {
    const size_t begin = PreviousUtf8(text, text.size());
    size_t position = begin;
    if (!HasUnicodeClass(DecodeUtf8(text, &position), kClassSpace)) break;
    text.remove_suffix(text.size() - begin);
  }
  return text;
}

}  // namespace

std::string NormalizeUnicode(absl::string_view text, bool compatibility, bool compose) {
  if (IsInert(text, compatibility, compose)) return std::string(text);
  std::vector<utf8proc_int32_t> code_points = Decompose(text, compatibility);
  OrderMarks(&code_points);
  if (compose) {
    const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    const utf8proc_ssize_t length = utf8proc_normalize_utf32(code_points.data(), static_cast<utf8proc_ssize_t>(code_points.size()),
                                                             options);
    code_points.resize(length >= 0 ? static_cast<size_t>(length) : code_points.size());
  }
  std::string result;
  result.reserve(text.size());
  for (const utf8proc_int32_t c : code_points) AppendUtf8(static_cast<char32_t>(c), &result);
  return result;
}

absl::StatusOr<std::string> ReplaceMatches(const SplitPattern& pattern, absl::string_view content, absl::string_view text) {
  std::vector<TextPiece> pieces;
  RETURN_IF_ERROR(pattern.FindPieces(text, &pieces));
  std::string result;
  result.reserve(text.size());
  for (const TextPiece& piece : pieces)
    absl::StrAppend(&result, piece.is_match ? content : text.substr(piece.begin, piece.end - piece.begin));
  return result;
}

absl::StatusOr<Normalizer> Normalizer::Create(const std::vector<NormalizerStep>& steps) {
  Normalizer normalizer;
  for (const NormalizerStep& step : steps) {
    CompiledStep compiled = {step, {}};
    if (step.kind == NormalizerStep::kReplace) {
      ASSIGN_OR_RETURN(compiled.pattern, SplitPattern::Create(step.pattern));
    }
    normalizer.steps_.push_back(std::move(compiled));
  }
  return normalizer;
}

absl::Status Normalizer::Normalize(std::string* text) const {
  for (const auto& [step, pattern] : steps_) {
    switch (step.kind) {
      case NormalizerStep::kNfc: *text = NormalizeUnicode(*text, false, true); break;
      case NormalizerStep::kNfd: *text = NormalizeUnicode(*text, false, false); break;
      case NormalizerStep::kNfkc: *text = NormalizeUnicode(*text, true, true); break;
      case NormalizerStep::kNfkd: *text = NormalizeUnicode(*text, true, false); break;
      case NormalizerStep::kLowercase: *text = Lowercase(*text); break;
      case NormalizerStep::kStrip: *text = std::string(Strip(*text, step.strip_left, step.strip_right)); break;
      case NormalizerStep::kReplace: {
        ASSIGN_OR_RETURN(*text, ReplaceMatches(pattern, step.content, *text));
        break;
      }
      case NormalizerStep::kPrepend:
        if (!text->empty()) text->insert(0, step.content);
        break;
    }
  }
  return absl::OkStatus();
}

}  // namespace pith
