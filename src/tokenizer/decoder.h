// Token texts back to text. A chain of steps over a list of token texts, as in the Hugging Face tokenizers library.
// Thread-safe after creation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tokenizer/split_pattern.h"
#include "tokenizer/tokenizer_definition.h"

namespace pith {

class Decoder {
 public:
  Decoder() = default;
  // Without steps the decoder concatenates; without a decoder (nullopt) tokens are joined by spaces. Errors: as SplitPattern::Create.
  static absl::StatusOr<Decoder> Create(const std::optional<std::vector<DecoderStep>>& steps);

  // Valid UTF-8: malformed parts become U+FFFD (ByteFallback: one for every byte of a malformed run of byte tokens).
  std::string Decode(std::vector<std::string> tokens) const;
  // The bytes a token adds in the middle of a text.
  std::string TokenBytes(absl::string_view token) const;
  // Whether the text of a whole sequence loses a leading space.
  bool strips_leading_space() const { return strips_leading_space_; }

 private:
  struct CompiledStep {
    DecoderStep step;
    SplitPattern pattern;  // kReplace
  };
  bool joins_with_spaces_ = false;
  bool strips_leading_space_ = false;
  std::vector<CompiledStep> steps_;
};

// The byte that "<0x41>" stands for, or -1.
int ParseByteToken(absl::string_view token);

}  // namespace pith
