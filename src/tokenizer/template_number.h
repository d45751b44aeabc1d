// Numbers as Python reads, rounds and prints them.
// Thread-safe, no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pith::jinja {

// repr(float): the shortest digits that read back, "1e+16" from 10^16 on and below 10^-4, "inf", "nan".
std::string FormatFloat(double number);

// float(text): surrounding white space, a sign, digits with single underscores, an exponent, inf, infinity, nan. nullopt where Python
// raises.
std::optional<double> ParseFloat(absl::string_view text);

// int(text, base), base 2 to 36 or 0 (by prefix). nullopt where Python raises ValueError. Errors: past 64 bits, another base.
absl::StatusOr<std::optional<int64_t>> ParseInteger(absl::string_view text, int64_t base);

// round(number, digits): to even on ties, decided by the exact binary value.
double RoundToDigits(double number, int64_t digits);
// The same for integers, digits < 0. Errors: past 64 bits.
absl::StatusOr<int64_t> RoundToDigits(int64_t number, int64_t digits);

// Errors: past 64 bits, division by zero. Quotients round down; remainders have the sign of the divisor.
absl::StatusOr<int64_t> AddIntegers(int64_t a, int64_t b);
absl::StatusOr<int64_t> SubtractIntegers(int64_t a, int64_t b);
absl::StatusOr<int64_t> MultiplyIntegers(int64_t a, int64_t b);
absl::StatusOr<int64_t> FloorDivideIntegers(int64_t a, int64_t b);
absl::StatusOr<int64_t> RemainderOfIntegers(int64_t a, int64_t b);
absl::StatusOr<int64_t> PowerOfIntegers(int64_t base, int64_t exponent);  // exponent >= 0
absl::StatusOr<double> FloorDivideFloats(double a, double b);
absl::StatusOr<double> RemainderOfFloats(double a, double b);
// Errors: 0 to a negative power, a negative base to a fraction, overflow.
absl::StatusOr<double> PowerOfFloats(double base, double exponent);
// int(number): toward zero. Errors: not finite or past 64 bits.
absl::StatusOr<int64_t> TruncateToInteger(double number);

}  // namespace pith::jinja
