// Regular expressions (PCRE2) with limits on what a hostile expression or text may cost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pith {

// A compiled expression. Immutable: thread-safe, and copies share it.
class Regex {
 public:
  struct Options {
    bool unicode = false;   // characters and classes of Unicode; texts must be valid UTF-8. Without \C, which could split a character
    bool anchored = false;  // a match begins where the search does
    bool ignore_case = false;
    bool multiline = false;          // ^ and $ match at lines
    bool jit = false;                // machine code, where PCRE2 can: for expressions that are used often
    size_t max_bytes = 4096;         // of the expression
    uint32_t max_steps = 1'000'000;  // of backtracking in one search: milliseconds
    uint32_t max_depth = 1'000'000;  // of them nested
    uint32_t max_heap_bytes = 64u << 20;
  };
  // Bytes [begin, end) of the text.
  struct Match {
    size_t begin, end;
  };

  // Errors: kDataLoss with the reason and its place.
  static absl::StatusOr<Regex> Compile(absl::string_view expression, const Options& options);

  // The first match at `offset` or after it. Errors: kDataLoss when the search passes a limit.
  absl::StatusOr<std::optional<Match>> Find(absl::string_view text, size_t offset = 0) const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
};

}  // namespace pith
