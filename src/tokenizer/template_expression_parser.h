// Parses the expressions of a template, with jinja2's grammar and precedence.
//
// From loosest to tightest: conditional, or, and, not, comparison, + -, ~, * / // %, **, sign, then postfixes, filters and tests.
// Recursion is bounded by ChatTemplateLimits::depth. Not thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tokenizer/template_ast.h"
#include "tokenizer/template_lexer.h"

namespace pith::jinja {

class ExpressionParser {
 public:
  // The last token must be kEnd.
  ExpressionParser(std::vector<Token> tokens, int max_depth) : tokens_(std::move(tokens)), max_depth_(max_depth) {}

  // Errors of all: kInvalidArgument "line N: expected ..., found ...", or the limit depth.
  absl::StatusOr<ExprPtr> ParseExpression(bool with_conditional = true);
  // An expression, or a tuple when a comma follows; `end_name` is a name that ends it ("in", "recursive", or "").
  absl::StatusOr<ExprPtr> ParseTuple(bool with_conditional = true, absl::string_view end_name = "", bool in_parentheses = false);
  // "|name(...)|name": applied to `input`, null for the text of a block. `inline_start`: the first "|" is left out.
  absl::StatusOr<ExprPtr> ParseFilters(ExprPtr input, bool inline_start);
  // What stands left of "=" or "in". `with_namespace` allows "ns.attribute".
  absl::StatusOr<Target> ParseTarget(bool with_namespace, absl::string_view end_name = "");
  absl::StatusOr<Symbol> ParseTargetName();

  const Token& Current() const { return tokens_[position_]; }
  const Token& LookAhead() const { return tokens_[std::min(position_ + 1, tokens_.size() - 1)]; }
  Token Take();
  bool SkipName(absl::string_view name);
  bool SkipOperator(absl::string_view symbol);
  absl::Status ExpectName(absl::string_view name);
  absl::Status ExpectOperator(absl::string_view symbol);
  absl::Status ExpectKind(TokenKind kind, absl::string_view what);
  absl::Status Unexpected(absl::string_view expected) const;
  template <typename... Args> static absl::Status FailAt(int line, const Args&... args) {
    return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", args...));
  }

  Symbol Intern(absl::string_view name);
  std::vector<std::string> TakeSymbols() && { return std::move(symbols_); }

  // Names of filters and tests that do not exist. As in jinja2 this is an error of the template, unless an if or a conditional
  // expression around it may keep it from running: those forget what was added since their mark.
  size_t UnknownNamesMark() const { return unknown_names_.size(); }
  void ForgetUnknownNames(size_t mark) { unknown_names_.resize(mark); }
  absl::Status CheckUnknownNames(size_t mark) const { return mark < unknown_names_.size() ? unknown_names_[mark] : absl::OkStatus(); }

  // How often a set or for statement assigned to the name "loop".
  int loop_assignments() const { return loop_assignments_; }

  // One level of nesting; check status() before going on.
  class Nested {
   public:
    explicit Nested(ExpressionParser& parser) : parser_(parser) { ++parser_.depth_; }
    ~Nested() { --parser_.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    absl::Status status() const;

   private:
    ExpressionParser& parser_;
  };

 private:
  absl::StatusOr<ExprPtr> ParseOr();
  absl::StatusOr<ExprPtr> ParseAnd();
  absl::StatusOr<ExprPtr> ParseNot();
  absl::StatusOr<ExprPtr> ParseCompare();
  absl::StatusOr<ExprPtr> ParseSum();
  absl::StatusOr<ExprPtr> ParseConcat();
  absl::StatusOr<ExprPtr> ParseProduct();
  absl::StatusOr<ExprPtr> ParsePower();
  absl::StatusOr<ExprPtr> ParseSigned(bool with_filters);
  absl::StatusOr<ExprPtr> ParsePrimary();
  absl::StatusOr<ExprPtr> ParseNameOrLiteral();
  absl::StatusOr<ExprPtr> ParseList();
  absl::StatusOr<ExprPtr> ParseDict();
  absl::StatusOr<ExprPtr> ParsePostfixes(ExprPtr object);
  absl::StatusOr<ExprPtr> ParseFiltersAndTests(ExprPtr input);
  absl::StatusOr<ExprPtr> ParseAttribute(ExprPtr object);
  absl::StatusOr<ExprPtr> ParseSubscript(ExprPtr object);
  absl::StatusOr<ExprPtr> ParseSlice(ExprPtr object, ExprPtr start, int line);
  absl::StatusOr<ExprPtr> ParseCall(ExprPtr callee);
  absl::StatusOr<ExprPtr> ParseTest(ExprPtr input);
  absl::StatusOr<ArgumentsExpr> ParseArguments();
  absl::Status ParseArgument(ArgumentsExpr* arguments);
  absl::StatusOr<std::string> ParseDottedName();
  absl::StatusOr<Target> ParseTargetItem(bool with_namespace);
  absl::StatusOr<Target> ToTarget(const Expr& expr);
  absl::StatusOr<Target> NameTarget(Symbol symbol, int line);

  // MakeExpr with the limit of the height.
  absl::StatusOr<ExprPtr> Make(int line, Expr::Node node) const;
  template <typename Operator, typename Match, typename ParseOperand, typename Wrap>
  absl::StatusOr<ExprPtr> ParseChain(Match match, ParseOperand parse_operand, Wrap wrap);

  const std::vector<Token> tokens_;
  const int max_depth_;
  size_t position_ = 0;
  int depth_ = 0;
  int loop_assignments_ = 0;
  std::vector<std::string> symbols_;
  absl::flat_hash_map<std::string, Symbol> symbol_index_;
  std::vector<absl::Status> unknown_names_;
};

}  // namespace pith::jinja
