// Splits a template into tokens exactly as jinja2's lexer does with trim_blocks and lstrip_blocks: text, {{ }}, {% %}, comments, raw
// blocks, and the whitespace control signs - and +.
//
// Known narrowing: identifiers are ASCII, integers have 64 bits, "\N{name}" and surrogate escapes are refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pith::jinja {

enum class TokenKind {
  kData,           // text: literal text
  kVariableBegin,  // {{
  kVariableEnd,
  kBlockBegin,  // {%
  kBlockEnd,
  kName,      // text
  kString,    // text, unescaped
  kInteger,   // integer
  kFloat,     // real
  kOperator,  // text
  kEnd,       // of the template
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 1;
  std::string text;
  int64_t integer = 0;
  double real = 0;

  bool IsName(absl::string_view name) const { return kind == TokenKind::kName && text == name; }
  bool IsOperator(absl::string_view symbol) const { return kind == TokenKind::kOperator && text == symbol; }
};

// What a token is called in messages: "'}}'", "name 'foo'".
std::string Describe(const Token& token);

// `source` must be UTF-8. The last token is kEnd. Linear time.
// Errors: kInvalidArgument "line N: ..." for a character, string, number or bracket that does not fit.
absl::StatusOr<std::vector<Token>> Tokenize(absl::string_view source);

}  // namespace pith::jinja
