// The pre-tokenizer: cuts normalized text into the words that the model encodes one by one.
// Every step works on each piece the step before left, as in the Hugging Face tokenizers library. Linear in the text for every known
// pattern. Thread-safe after creation.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tokenizer/split_pattern.h"
#include "tokenizer/tokenizer_definition.h"

namespace pith {

class PreTokenizer {
 public:
  using EmitWord = absl::FunctionRef<void(absl::string_view word)>;

  PreTokenizer() = default;
  // With `raw_bytes`, a ByteLevel step that comes last leaves words as bytes instead of writing them in the byte-level alphabet.
  // Errors: as SplitPattern::Create.
  static absl::StatusOr<PreTokenizer> Create(const std::vector<PreTokenizerStep>& steps, bool raw_bytes);

  // Calls `emit` with each word of `text` in order; the views are valid during the call only. `at_text_start`: nothing was before it.
  // Errors: as SplitPattern::FindPieces.
  absl::Status Split(absl::string_view text, bool at_text_start, EmitWord emit) const;

 private:
  struct CompiledStep {
    PreTokenizerStep step;
    SplitPattern pattern;
  };

  absl::Status Run(size_t index, absl::string_view text, bool at_text_start, EmitWord emit) const;
  absl::Status RunSplit(size_t index, absl::string_view text, bool at_text_start, EmitWord emit) const;
  absl::Status RunByteLevel(size_t index, absl::string_view text, bool at_text_start, EmitWord emit) const;
  absl::Status RunMetaspace(size_t index, absl::string_view text, bool at_text_start, EmitWord emit) const;
  absl::Status RunPieces(size_t index, const std::vector<TextPiece>& pieces, absl::string_view text, bool at_text_start,
                         EmitWord emit) const;

  std::vector<CompiledStep> steps_;
  bool raw_bytes_ = false;
};

}  // namespace pith
