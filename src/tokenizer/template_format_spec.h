// Python's format specification mini-language for numbers and text: [[fill]align][sign][#][0][width][grouping][.precision][type].
// Also the core of "%" formatting. Thread-safe, no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pith::jinja {

struct FormatSpec {
  std::string fill = " ";  // one character
  char align = 0;          // < > ^ =, 0 for the default of the type
  char sign = '-';         // - + or space
  bool alternate = false;  // #
  char grouping = 0;       // , or _
  int64_t width = 0;
  std::optional<int64_t> precision;
  std::optional<int64_t> min_digits;  // of integers, for "%.5d"
  char type = 0;
};

// Errors: bad syntax, a width or precision past kMaxFormatNumber.
absl::StatusOr<FormatSpec> ParseFormatSpec(absl::string_view spec);
inline constexpr int64_t kMaxFormatNumber = 100'000;

// Padded and signed. Errors: a type that is none of the number's.
absl::StatusOr<std::string> FormatInteger(const FormatSpec& spec, int64_t number);  // b c d o x X, and as FormatReal
absl::StatusOr<std::string> FormatReal(const FormatSpec& spec, double number);      // e E f F g G % and none

// How much to put before and after `length` characters; text stands left by default, numbers right.
struct Padding {
  int64_t before = 0, after = 0;
};
Padding PadTo(const FormatSpec& spec, int64_t length, char default_align);

}  // namespace pith::jinja
