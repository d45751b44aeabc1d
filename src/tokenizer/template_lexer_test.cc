#include "tokenizer/template_lexer.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith::jinja {
namespace {

using ::testing::HasSubstr;

// "data(a) {{ name(x) }} ..." on one line.
std::string Lex(absl::string_view source) {
  const absl::StatusOr<std::vector<Token>> tokens = Tokenize(source);
  if (!tokens.ok()) return absl::StrCat("ERROR: ", tokens.status().message());
  std::string shown;
  for (const Token& token : *tokens) {
    switch (token.kind) {
      case TokenKind::kData: absl::StrAppend(&shown, "data(", token.text, ") "); break;
      case TokenKind::kVariableBegin: absl::StrAppend(&shown, "{{ "); break;
      case TokenKind::kVariableEnd: absl::StrAppend(&shown, "}} "); break;
      case TokenKind::kBlockBegin: absl::StrAppend(&shown, "{% "); break;
      case TokenKind::kBlockEnd: absl::StrAppend(&shown, "%} "); break;
      case TokenKind::kInteger: absl::StrAppend(&shown, "int(", token.integer, ") "); break;
      case TokenKind::kFloat: absl::StrAppend(&shown, "float(", token.real, ") "); break;
      case TokenKind::kString: absl::StrAppend(&shown, "str(", token.text, ") "); break;
      case TokenKind::kName: absl::StrAppend(&shown, "name(", token.text, ") "); break;
      case TokenKind::kOperator: absl::StrAppend(&shown, token.text, " "); break;
      case TokenKind::kEnd: absl::StrAppend(&shown, "."); break;
    }
  }
  return shown;
}

TEST(TemplateLexer, TagsAndText) {
  EXPECT_EQ(Lex(""), ".");
  EXPECT_EQ(Lex("a{b"), "data(a{b) .");
  EXPECT_EQ(Lex("a{{ x }}b{% if y %}c{# d #}e"), "data(a) {{ name(x) }} data(b) {% name(if) name(y) %} data(c) data(e) .");
  EXPECT_EQ(Lex("{{{'a':1}}}"), "{{ { str(a) : int(1) } }} .");
  EXPECT_EQ(Lex("{{ '}}' }}{%x%}"), "{{ str(}}) }} {% name(x) %} .");
}

TEST(TemplateLexer, NewlinesAreNormalizedAndTheLastOneGoes) {
  EXPECT_EQ(Lex("a\r\nb\rc\n"), "data(a\nb\nc) .");
  EXPECT_EQ(Lex("a\n\n"), "data(a\n) .");
  EXPECT_EQ(Lex("\n"), ".");
}

TEST(TemplateLexer, BlocksTrimTheirNewlineAndIndentation) {
  EXPECT_EQ(Lex("a\n  {% x %}\n b"), "data(a\n) {% name(x) %} data( b) .");
  EXPECT_EQ(Lex("  {% x %}  {% y %}\n\nz"), "{% name(x) %} data(  ) {% name(y) %} data(\nz) .");
  EXPECT_EQ(Lex("a {% x %}"), "data(a ) {% name(x) %} .");
  EXPECT_EQ(Lex("  {{ x }}\n"), "data(  ) {{ name(x) }} .");
  EXPECT_EQ(Lex("  {# c #}\n  {# d #}e"), "data(e) .");
}

TEST(TemplateLexer, SignsControlWhiteSpace) {
  EXPECT_EQ(Lex("a \n {%- x -%} \n b"), "data(a) {% name(x) %} data(b) .");
  EXPECT_EQ(Lex("\n  {%+ x +%}\nb"), "data(\n  ) {% name(x) %} data(\nb) .");
  EXPECT_EQ(Lex("a {{- x -}} b"), "data(a) {{ name(x) }} data(b) .");
  EXPECT_EQ(Lex("a {#- c -#} b {#+ d +#}\n"), "data(a) data(b ) .");
  EXPECT_EQ(Lex("a\u00a0{{- x -}}\u3000b"), "data(a) {{ name(x) }} data(b) .");
}

TEST(TemplateLexer, RawBlocks) {
  EXPECT_EQ(Lex("{% raw %}{{ x }}{% y %}{% endraw %}z"), "data({{ x }}{% y %}) data(z) .");
  EXPECT_EQ(Lex("{%- raw -%}  a  {%- endraw -%}  z"), "data(a) data(z) .");
  EXPECT_EQ(Lex("{%raw%}\na\n  {% endraw %}\nz"), "data(\na\n) data(z) .");
}

TEST(TemplateLexer, Numbers) {
  EXPECT_EQ(Lex("{{ 1 1.5 1e3 1_000 0x1F 0b11 0o17 00 2.5e-1 }}"),
            "{{ int(1) float(1.5) float(1000) int(1000) int(31) int(3) int(15) int(0) float(0.25) }} .");
  EXPECT_EQ(Lex("{{ x.0.1 1. 1e 0123 }}"), "{{ name(x) . int(0) . int(1) int(1) . int(1) name(e) int(0) int(123) }} .");
  EXPECT_EQ(Lex("{{ 9223372036854775807 }}"), "{{ int(9223372036854775807) }} .");
  EXPECT_THAT(Lex("\n{{ 9223372036854775808 }}"), HasSubstr("ERROR: line 2: expected integers of 64 bits"));
}

TEST(TemplateLexer, Strings) {
  EXPECT_EQ(Lex(R"({{ "a\"b" 'c\'d' 'e\n\t\\f' }})"), "{{ str(a\"b) str(c'd) str(e\n\t\\f) }} .");
  EXPECT_EQ(Lex(R"({{ '\x41\u00e9\U0001F600\101\7' }})"), "{{ str(Aé😀A\a) }} .");
  EXPECT_EQ(Lex("{{ 'a\\\nb\nc' }}"), "{{ str(ab\nc) }} .");
  EXPECT_EQ(Lex(R"({{ '\d\é\€\😀' }})"), R"({{ str(\d\xe9\u20ac\U0001f600) }} .)");
  for (const char* bad : {R"({{ '\x4' }})", R"({{ '\u12' }})", R"({{ '\ud83d' }})", R"({{ '\U00110000' }})", R"({{ '\N{DASH}' }})",
                          "{{ 'abc", "{{ 'abc\\'", "{{ \"a' }}"}) {
    EXPECT_THAT(Lex(bad), HasSubstr("ERROR: line 1: ")) << bad;
  }
}

TEST(TemplateLexer, OperatorsLongestFirst) {
  EXPECT_EQ(Lex("{{ a//b**c==d!=e>=f<=g }}"), "{{ name(a) // name(b) ** name(c) == name(d) != name(e) >= name(f) <= name(g) }} .");
}

TEST(TemplateLexer, Errors) {
  EXPECT_THAT(Lex("\n\n{{ ) }}"), HasSubstr("line 3: unexpected ')'"));
  EXPECT_THAT(Lex("{{ (] }}"), HasSubstr("expected ')', found ']'"));
  EXPECT_THAT(Lex("{{ ? }}"), HasSubstr("unexpected character '?'"));
  EXPECT_THAT(Lex("{{ é }}"), HasSubstr("unexpected character"));
  EXPECT_THAT(Lex("{# a"), HasSubstr("comment without #}"));
  EXPECT_THAT(Lex("{% raw %} a {% endif %}"), HasSubstr("raw block without {% endraw %}"));
  EXPECT_EQ(Lex("{{ x"), "{{ name(x) .");  // the parser misses the end
}

TEST(TemplateLexer, CountsLines) {
  const absl::StatusOr<std::vector<Token>> tokens = Tokenize("a\n{#\n#}\n{{ '\n'\nx }}");
  ASSERT_TRUE(tokens.ok());
  std::vector<int> lines;
  for (const Token& token : *tokens) lines.push_back(token.line);
  EXPECT_THAT(lines, ::testing::ElementsAre(1, 4, 4, 6, 6, 6));
}

}  // namespace
}  // namespace pith::jinja
