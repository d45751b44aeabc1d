// The normalizer of a tokenizer: text in, text out, step by step.
// Unicode normalization forms are those of utf8proc (Unicode 15), with the canonical ordering done here because utf8proc's is quadratic
// in a run of combining marks. Linear in the text (a run of marks n log n). Thread-safe after creation.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tokenizer/split_pattern.h"
#include "tokenizer/tokenizer_definition.h"

namespace pith {

class Normalizer {
 public:
  Normalizer() = default;
  // Errors: as SplitPattern::Create.
  static absl::StatusOr<Normalizer> Create(const std::vector<NormalizerStep>& steps);

  bool empty() const { return steps_.empty(); }
  // Replaces *text, valid UTF-8, by its normalized form. Errors: as SplitPattern::FindPieces.
  absl::Status Normalize(std::string* text) const;

 private:
  struct CompiledStep {
    NormalizerStep step;
    SplitPattern pattern;  // kReplace
  };
  std::vector<CompiledStep> steps_;
};

// One normalization form (Unicode annex 15) of valid UTF-8: compatibility or canonical, composed or decomposed. Pure.
std::string NormalizeUnicode(absl::string_view text, bool compatibility, bool compose);

// `text` with every match of `pattern` replaced by `content`. Errors: as SplitPattern::FindPieces.
absl::StatusOr<std::string> ReplaceMatches(const SplitPattern& pattern, absl::string_view content, absl::string_view text);

}  // namespace pith
