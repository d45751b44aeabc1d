#include "tokenizer/template_parser.h"

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <utility>

#include "base/status.h"
#include "tokenizer/template_expression_parser.h"
#include "tokenizer/template_lexer.h"
#include "tokenizer/template_symbols.h"
#include "tokenizer/template_unicode.h"
#include "tokenizer/utf8.h"

namespace pith::jinja {
namespace {

using Names = std::initializer_list<absl::string_view>;

std::string JoinNames(Names names) {
  std::string joined;
  for (const absl::string_view name : names) absl::StrAppend(&joined, joined.empty() ? "" : " or ", "'", name, "'");
  return joined;
}

class StatementParser {
 public:
  StatementParser(std::vector<Token> tokens, int max_depth) : parser_(std::move(tokens), max_depth) {}

  absl::StatusOr<ParsedTemplate> Run() {
    ParsedTemplate parsed;
    ASSIGN_OR_RETURN(parsed.body, ParseBody({}));
    RETURN_IF_ERROR(parser_.CheckUnknownNames(0));
    parsed.symbols = std::move(parser_).TakeSymbols();
    FindUnsetNames(&parsed);
    return parsed;
  }

 private:
  template <typename T> using Result = absl::StatusOr<T>;

  // Statements up to one of `end_names`, which becomes the current token; up to the end of the template when there are none.
  Result<Body> ParseBody(Names end_names) {
    const ExpressionParser::Nested nested(parser_);
    RETURN_IF_ERROR(nested.status());
    Body body;
    OutputStatement output;
    int output_line = 0;
    const auto flush = [&] {
      if (!output.expressions.empty()) body.push_back({std::exchange(output, {}), output_line});
    };
    while (parser_.Current().kind != TokenKind::kEnd) {
      const int line = parser_.Current().line;
      if (output.expressions.empty()) output_line = line;
      if (parser_.Current().kind == TokenKind::kBlockBegin) {
        flush();
        parser_.Take();
        if (std::any_of(end_names.begin(), end_names.end(), [&](absl::string_view name) { return parser_.Current().IsName(name); }))
          return body;
        ASSIGN_OR_RETURN(Statement::Node node, ParseStatement(end_names));
        body.push_back({std::move(node), line});
        RETURN_IF_ERROR(parser_.ExpectKind(TokenKind::kBlockEnd, "'%}'"));
      } else {
        ASSIGN_OR_RETURN(ExprPtr expr, ParseOutput());
        output.expressions.push_back(std::move(expr));
      }
    }
    flush();
    if (end_names.size() > 0) return parser_.Unexpected(JoinNames(end_names));
    return body;
  }

  Result<ExprPtr> ParseOutput() {
    const int line = parser_.Current().line;
    if (parser_.Current().kind == TokenKind::kData) return MakeExpr(line, ConstantExpr{MakeString(parser_.Take().text)});
    RETURN_IF_ERROR(parser_.ExpectKind(TokenKind::kVariableBegin, "'{{'"));
    ASSIGN_OR_RETURN(ExprPtr expr, parser_.ParseTuple());
    RETURN_IF_ERROR(parser_.ExpectKind(TokenKind::kVariableEnd, "'}}'"));
    return expr;
  }

  // The rest of an opening tag and the statements up to one of `end_names`, which becomes the current token.
  Result<Body> ParseBlock(Names end_names) {
    parser_.SkipOperator(":");
    RETURN_IF_ERROR(parser_.ExpectKind(TokenKind::kBlockEnd, "'%}'"));
    return ParseBody(end_names);
  }

  // The same, with the one end name taken, and unknown filters and tests reported: they have a scope of their own.
  Result<Body> ParseScopedBlock(absl::string_view end_name, size_t mark) {
    ASSIGN_OR_RETURN(Body body, ParseBlock({end_name}));
    parser_.Take();
    RETURN_IF_ERROR(parser_.CheckUnknownNames(mark));
    return body;
  }

  Result<Statement::Node> ParseStatement(Names end_names) {
    const Token& token = parser_.Current();
    if (token.kind != TokenKind::kName) return parser_.Unexpected("the name of a statement");
    if (token.text == "if") return ParseIf();
    if (token.text == "for") return ParseFor();
    if (token.text == "set") return ParseSet();
    if (token.text == "macro") return ParseMacro();
    if (token.text == "call") return ParseCallBlock();
    if (token.text == "filter") return ParseFilterBlock();
    if (token.text == "with") return ParseWith();
    if (token.text == "print") return ParsePrint();
    if (token.text == "generation") return ParseGeneration();
    if (token.text == "break" || token.text == "continue") return ParseLoopControl();
    for (const absl::string_view refused : {"block", "extends", "include", "import", "from", "autoescape"}) {
      if (token.text == refused) return ExpressionParser::FailAt(token.line, "statement '", refused, "' is not supported");
    }
    const std::string expected = end_names.size() > 0 ? absl::StrCat(" (expected ", JoinNames(end_names), ")") : "";
    return ExpressionParser::FailAt(token.line, "unknown statement '", token.text, "'", expected);
  }

  Result<Statement::Node> ParseIf() {
    IfStatement statement;
    const size_t mark = parser_.UnknownNamesMark();
    do {
      parser_.Take();
      ASSIGN_OR_RETURN(ExprPtr condition, parser_.ParseTuple(/*with_conditional=*/false));
      ASSIGN_OR_RETURN(Body body, ParseBlock({"elif", "else", "endif"}));
      statement.branches.emplace_back(std::move(condition), std::move(body));
    } while (parser_.Current().IsName("elif"));
    if (parser_.Take().text == "else") {
      ASSIGN_OR_RETURN(statement.otherwise, ParseBlock({"endif"}));
      parser_.Take();
    }
    parser_.ForgetUnknownNames(mark);
    return statement;
  }

  Result<Statement::Node> ParseFor() {
    ForStatement statement;
    const int line = parser_.Take().line, loop_assignments = parser_.loop_assignments();
    ASSIGN_OR_RETURN(statement.target, parser_.ParseTarget(/*with_namespace=*/false, "in"));
    RETURN_IF_ERROR(parser_.ExpectName("in"));
    ASSIGN_OR_RETURN(statement.iterable, parser_.ParseTuple(/*with_conditional=*/false, "recursive"));
    const size_t mark = parser_.UnknownNamesMark();
    if (parser_.SkipName("if")) {
      ASSIGN_OR_RETURN(statement.condition, parser_.ParseExpression());
    }
    if (parser_.Current().IsName("recursive")) return ExpressionParser::FailAt(line, "recursive loops are not supported");
    ++loops_;
    ASSIGN_OR_RETURN(statement.body, ParseBlock({"endfor", "else"}));
    --loops_;
    if (parser_.Take().text == "else") {
      ASSIGN_OR_RETURN(statement.otherwise, ParseBlock({"endfor"}));
      parser_.Take();
    }
    RETURN_IF_ERROR(parser_.CheckUnknownNames(mark));
    if (parser_.loop_assignments() > loop_assignments)
      return ExpressionParser::FailAt(line, "cannot assign to 'loop' inside a for statement");
    return statement;
  }

  Result<Statement::Node> ParseSet() {
    parser_.Take();
    ASSIGN_OR_RETURN(Target target, parser_.ParseTarget(/*with_namespace=*/true));
    if (parser_.SkipOperator("=")) {
      ASSIGN_OR_RETURN(ExprPtr value, parser_.ParseTuple());
      return SetStatement{std::move(target), std::move(value)};
    }
    const size_t mark = parser_.UnknownNamesMark();
    ExprPtr filter;
    if (parser_.Current().IsOperator("|")) {
      ASSIGN_OR_RETURN(filter, parser_.ParseFilters(nullptr, /*inline_start=*/false));
    }
    ASSIGN_OR_RETURN(Body body, ParseScopedBlock("endset", mark));
    return SetBlockStatement{std::move(target), std::move(filter), std::move(body)};
  }

  // "(name, name=default, ...)"
  absl::Status ParseParameters(MacroDefinition* macro) {
    RETURN_IF_ERROR(parser_.ExpectOperator("("));
    while (!parser_.Current().IsOperator(")")) {
      if (!macro->parameters.empty()) RETURN_IF_ERROR(parser_.ExpectOperator(","));
      const int line = parser_.Current().line;
      ASSIGN_OR_RETURN(const Symbol parameter, parser_.ParseTargetName());
      if (std::find(macro->parameters.begin(), macro->parameters.end(), parameter) != macro->parameters.end()) {
        return ExpressionParser::FailAt(line, "a macro names one parameter twice");
      }
      macro->parameters.push_back(parameter);
      if (parser_.SkipOperator("=")) {
        ASSIGN_OR_RETURN(ExprPtr value, parser_.ParseExpression());
        macro->defaults.push_back(std::move(value));
      } else if (!macro->defaults.empty()) {
        return ExpressionParser::FailAt(line, "parameter without a default after one with a default");
      }
    }
    parser_.Take();
    return absl::OkStatus();
  }

  // The body, and which of the special names it uses. `mark`: unknown names before the parameters.
  absl::Status ParseMacroBody(absl::string_view end_name, size_t mark, int line, MacroDefinition* macro) {
    const int outer_loops = std::exchange(loops_, 0);
    ASSIGN_OR_RETURN(macro->body, ParseScopedBlock(end_name, mark));
    loops_ = outer_loops;
    const Symbol caller = parser_.Intern("caller"), kwargs = parser_.Intern("kwargs"), varargs = parser_.Intern("varargs");
    const std::vector<Symbol> used = FindUndeclared(macro->body, {caller, kwargs, varargs});
    const auto has = [](const std::vector<Symbol>& symbols, Symbol symbol) {
      return std::find(symbols.begin(), symbols.end(), symbol) != symbols.end();
    };
    macro->explicit_caller = has(macro->parameters, caller);
    macro->uses_caller = has(used, caller);
    macro->uses_kwargs = has(used, kwargs) && !has(macro->parameters, kwargs);
    macro->uses_varargs = has(used, varargs) && !has(macro->parameters, varargs);
    const auto at = std::find(macro->parameters.begin(), macro->parameters.end(), caller);
    if (macro->explicit_caller && macro->uses_caller && static_cast<size_t>(macro->parameters.end() - at) > macro->defaults.size()) {
      return ExpressionParser::FailAt(line, "the parameter 'caller' needs a default");
    }
    return absl::OkStatus();
  }

  Result<Statement::Node> ParseMacro() {
    const int line = parser_.Take().line;
    const size_t mark = parser_.UnknownNamesMark();
    auto macro = std::make_unique<MacroDefinition>();
    macro->name = parser_.Current().text;
    ASSIGN_OR_RETURN(const Symbol symbol, parser_.ParseTargetName());
    RETURN_IF_ERROR(ParseParameters(macro.get()));
    RETURN_IF_ERROR(ParseMacroBody("endmacro", mark, line, macro.get()));
    return MacroStatement{symbol, std::move(macro)};
  }

  Result<Statement::Node> ParseCallBlock() {
    const int line = parser_.Take().line;
    auto caller = std::make_unique<MacroDefinition>();
    if (parser_.Current().IsOperator("(")) RETURN_IF_ERROR(ParseParameters(caller.get()));
    ASSIGN_OR_RETURN(ExprPtr call, parser_.ParseExpression());
    const auto* node = std::get_if<CallExpr>(&call->node);
    if (node == nullptr) return ExpressionParser::FailAt(line, "expected a call after 'call'");
    for (const auto& [name, value] : node->arguments.keyword) {
      if (name == "caller") return ExpressionParser::FailAt(line, "keyword argument 'caller' is given twice");
    }
    const size_t mark = parser_.UnknownNamesMark();
    RETURN_IF_ERROR(ParseMacroBody("endcall", mark, line, caller.get()));
    return CallBlockStatement{std::move(call), std::move(caller)};
  }

  Result<Statement::Node> ParseFilterBlock() {
    parser_.Take();
    const size_t mark = parser_.UnknownNamesMark();
    ASSIGN_OR_RETURN(ExprPtr filter, parser_.ParseFilters(nullptr, /*inline_start=*/true));
    ASSIGN_OR_RETURN(Body body, ParseScopedBlock("endfilter", mark));
    return FilterBlockStatement{std::move(filter), std::move(body)};
  }

  Result<Statement::Node> ParseWith() {
    parser_.Take();
    ScopeStatement scope;
    while (parser_.Current().kind != TokenKind::kBlockEnd) {
      if (!scope.bindings.empty()) RETURN_IF_ERROR(parser_.ExpectOperator(","));
      ASSIGN_OR_RETURN(Target target, parser_.ParseTarget(/*with_namespace=*/false));
      RETURN_IF_ERROR(parser_.ExpectOperator("="));
      ASSIGN_OR_RETURN(ExprPtr value, parser_.ParseExpression());
      scope.bindings.emplace_back(std::move(target), std::move(value));
    }
    ASSIGN_OR_RETURN(scope.body, ParseScopedBlock("endwith", parser_.UnknownNamesMark()));
    return scope;
  }

  Result<Statement::Node> ParsePrint() {
    parser_.Take();
    OutputStatement output;
    while (parser_.Current().kind != TokenKind::kBlockEnd) {
      if (!output.expressions.empty()) RETURN_IF_ERROR(parser_.ExpectOperator(","));
      ASSIGN_OR_RETURN(ExprPtr expr, parser_.ParseExpression());
      output.expressions.push_back(std::move(expr));
    }
    return output;
  }

  // The body is a function of its own, as in transformers: loop controls do not reach out of it.
  Result<Statement::Node> ParseGeneration() {
    parser_.Take();
    const int outer_loops = std::exchange(loops_, 0);
    ScopeStatement scope;
    ASSIGN_OR_RETURN(scope.body, ParseScopedBlock("endgeneration", parser_.UnknownNamesMark()));
    loops_ = outer_loops;
    return scope;
  }

  Result<Statement::Node> ParseLoopControl() {
    const Token token = parser_.Take();
    if (loops_ == 0) return ExpressionParser::FailAt(token.line, "'", token.text, "' outside a loop");
    return LoopControlStatement{.is_break = token.text == "break"};
  }

  ExpressionParser parser_;
  int loops_ = 0;  // for statements around the current one, within its macro
};

}  // namespace

absl::StatusOr<ParsedTemplate> ParseTemplate(absl::string_view source, const ChatTemplateLimits& limits) {
  if (source.size() > kMaxTemplateBytes) return UsageError("expected at most ", kMaxTemplateBytes, " bytes, found ", source.size());
  if (!IsValidUtf8(source)) return UsageError("expected UTF-8 text, found other bytes");
  ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(source));
  return StatementParser(std::move(tokens), limits.depth).Run();
}

}  // namespace pith::jinja
