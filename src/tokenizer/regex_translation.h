// Patterns in tokenizer.json are written for Oniguruma in its Ruby syntax. This turns one into a PCRE2 pattern (UTF, UCP, MULTILINE)
// that matches the same text, and refuses the constructs whose meaning differs and cannot be kept.
//
//   \s \S \w \W       the Unicode property sets of Oniguruma, which PCRE2 defines a little wider or narrower
//   \h \H             hexadecimal digits; \uHHHH a code point
//   [a[b]]            a nested set is a union: flattened
//   refused           [a&&b], negated nested sets, \W in a set, \R \X \K \G \y, back references, (?~...), {,n}, possessive {n,m}+
// Source: Oniguruma 6.9 doc/RE; pcre2pattern(3) of PCRE2 10.42.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pith {

// Errors: kUnimplemented naming the construct and its byte offset; kDataLoss when the pattern ends inside a construct. Pure.
absl::StatusOr<std::string> TranslateOnigurumaPattern(absl::string_view pattern);

}  // namespace pith
