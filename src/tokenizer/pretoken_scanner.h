// Hand-written scanners for the pre-tokenizer patterns nearly every byte-level model publishes. They cut text into the pieces the
// pattern matches one after the other (every character belongs to one), in one pass without backtracking.
//
// Sources of the patterns: GPT-2's encoder.py; tokenizer.json of Llama 3 (three digits) and Qwen2 (one digit).
#pragma once

#include <cstddef>
#include <optional>

#include "absl/strings/string_view.h"

namespace pith {

inline constexpr char kGpt2Pattern[] = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr char kLlama3Pattern[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr char kQwen2Pattern[] =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// End of the piece that starts at `begin` < text.size(). `text` must be valid UTF-8. Pure.
using PretokenScanner = size_t (*)(absl::string_view text, size_t begin);

size_t ScanGpt2(absl::string_view text, size_t begin);
size_t ScanLlama3(absl::string_view text, size_t begin);
size_t ScanQwen2(absl::string_view text, size_t begin);

// The scanner that does what `pattern` says, or nullptr when there is none.
PretokenScanner FindPretokenScanner(absl::string_view pattern);

}  // namespace pith
