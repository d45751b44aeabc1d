#include "tokenizer/template_format.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tokenizer/template_test_render.h"

namespace pith::jinja {
namespace {

using ::testing::StartsWith;

// Expected values: Python 3.11.
TEST(TemplateFormat, Percent) {
  constexpr Example kExamples[] = {
      {"'%s|%5s|%-5s|%.2s' % ('a', 'b', 'c', 'def')", "a|    b|c    |de"},
      {"'%d|%5d|%-5d|%05d|%+d|% d|%.3d' % (42, 42, 42, -42, 42, 42, 7)", "42|   42|42   |-0042|+42| 42|007"},
      {"'%x|%X|%#x|%o|%#o|%i|%u' % (255, 255, 255, 8, 8, 3, 4)", "ff|FF|0xff|10|0o10|3|4"},
      {"'%f|%.2f|%8.3f|%-8.1f|%e|%G|%g' % (1.5, 2.345, 3.14159, 2.55, 12345.678, 1e-10, 0.0001)",
       "1.500000|2.35|   3.142|2.5     |1.234568e+04|1E-10|0.0001"},
      {"'%c%c|%r|%a|%%' % ('x', 8364, 'é', 'é')", "x€|'é'|'\\xe9'|%"},
      {"'%(a)s-%(b)03d' % {'a': 'x', 'b': 7, 'c': 1}", "x-007"},
      {"'%*d|%-*d|%.*f' % (5, 42, 5, 42, 1, 2.55)", "   42|42   |2.5"},
      {"'%d|%d|%s' % (2.9, true, none)", "2|1|None"},
      {"'abc' % [] ~ 'abc' % {} ~ '%s' % [1] ~ '%s' % missing ~ '%s' % (missing,)", "abcabc[1]"},
      {"'%5.1f|%05d' % (1e400, -3)", "  inf|-0003"},
      {"'%s %s' % ('ab', [1, 'x'])", "ab [1, 'x']"},
  };
  for (const auto& [expression, expected] : kExamples) EXPECT_EQ(Evaluate(expression), expected) << expression;
  for (const char* bad : {"'%s %s' % ('a',)", "'%s' % ('a', 'b')", "'abc' % 1", "'%d' % 'a'", "'%d' % missing", "'%x' % 1.5", "'%(a)s' % 1",
                          "'%(b)s' % {'a': 1}", "'%y' % 1", "'%' % 1", "'%(a' % {}", "'%c' % 'ab'", "'%c' % 1114112", "'%*d' % ('a', 1)",
                          "'%f' % 'x'", "'%999999999d' % 1", "'%.999999999f' % 1"}) {
    EXPECT_THAT(Evaluate(bad), StartsWith("ERROR: ")) << bad;
  }
}

TEST(TemplateFormat, Braces) {
  constexpr Example kExamples[] = {
      {"'{} {} {{}}'.format(1, 'a')", "1 a {}"},
      {"'{1}{0}{1}'.format(1, 2)", "212"},
      {"'{a}{b!r}{c!s}{d!a}'.format(a=1, b='x', c='y', d='é')", "1'x'y'\\xe9'"},
      {"'{0[a]}{0[b][1]}{1.x}'.format({'a': 1, 'b': [2, 3]}, {'x': 4})", "134"},
      {"'{:>4}|{:<4}|{:^5}|{:*^5}|{:é>3}'.format('a', 'b', 'c', 'd', 'e')", "   a|b   |  c  |**d**|éée"},
      {"'{:.2}|{:5.1}|{:05}'.format('abc', 'xyz', 'a')", "ab|x    |a0000"},
      {"'{:5}|{:<5}|{:05d}|{:+}|{: }|{:=+6}|{:,}|{:_}'.format(42, 42, -42, 42, 42, 42, 1234567, 1234567)",
       "   42|42   |-0042|+42| 42|+   42|1,234,567|1_234_567"},
      {"'{:x}|{:X}|{:#x}|{:o}|{:b}|{:#b}|{:_b}'.format(255, 255, 255, 8, 5, 5, 255)", "ff|FF|0xff|10|101|0b101|1111_1111"},
      {"'{:f}|{:.2f}|{:e}|{:g}|{:%}|{:.1%}|{:,.2f}|{:010.3f}'.format(1.5, 2.345, 12345.678, 0.0001, 0.25, 0.256, 12345.678, -3.14159)",
       "1.500000|2.35|1.234568e+04|0.0001|25.000000%|25.6%|12,345.68|-00003.142"},
      {"'{:.3}|{:.1}|{:.3}|{:10}|{}'.format(1234.5, 10.0, 1.0, 2.5, 1e16)", "1.23e+03|1e+01|1.0|       2.5|1e+16"},
      {"'{:{}}|{:{w}.{p}f}'.format('a', 3, 2.345, w=7, p=2)", "a  |   2.35"},
      {"'{}{}{}'.format(true, none, missing) ~ '{:d}'.format(true) ~ '{:3}|'.format(true)", "TrueNone1  1|"},
      {"'{:012,}|{:08,.1f}'.format(1234567, 1234.5)", "0,001,234,567|01,234.5"},
  };
  for (const auto& [expression, expected] : kExamples) EXPECT_EQ(Evaluate(expression), expected) << expression;
  for (const char* bad : {"'{}'.format()", "'{a}'.format()", "'{'.format(1)", "'}'.format(1)", "'{0}{}'.format(1, 2)", "'{!x}'.format(1)",
                          "'{:d}'.format('a')", "'{:.2}'.format(5)", "'{:s}'.format(5)", "'{:5}'.format(none)", "'{:5}'.format([1])",
                          "'{0.}'.format(1)", "'{0[}'.format(1)", "'{:{:{}}}'.format(1, 2, 3)", "'{:=5}'.format('a')", "'{:,x}'.format(5)",
                          "'{:999999999}'.format(1)", "'{:.}'.format(1.5)", "'{:5zz}'.format(1)"}) {
    EXPECT_THAT(Evaluate(bad), StartsWith("ERROR: ")) << bad;
  }
}

TEST(TemplateFormat, Time) {
  constexpr Example kExamples[] = {
      {"strftime_now('%A %a %B %b %h %d %e %j %U %W %w %u %y %Y %G %V %C')",
       "Wednesday Wed July Jul Jul 31 31 213 30 31 3 3 24 2024 2024 31 20"},
      {"strftime_now('%H %I %k %l %M %S %p %P %T %R %r %D %F %c %x %X')",
       "23 11 23 11 05 45 PM pm 23:05:45 23:05 11:05:45 PM 07/31/24 2024-07-31 Wed Jul 31 23:05:45 2024 07/31/24 23:05:45"},
      {"strftime_now('%-d %-m %_m %^a %#p é%%x[%f]')", "31 7  7 WED pm é%x[000000]"},
      {"strftime_now('a%nb%tc')", "a\nb\tc"},
      {"strftime_now('[%z%Z]')", "[]"},
      {"strftime_now('100%')", "100%"},
  };
  for (const auto& [expression, expected] : kExamples) EXPECT_EQ(Evaluate(expression), expected) << expression;
  EXPECT_EQ(Evaluate("strftime_now('%s')"), "1722467145");
}

TEST(TemplateFormat, OriginsAreKept) {
  EXPECT_EQ(RenderOrigins("{{ 'a%sb%5s%d' % (s, 'x', n) }}"), "a[Straße ﬁ ΑΣ]b    x5");
  EXPECT_EQ(RenderOrigins("{{ 'a{}b{}'.format(s[:2], [s[:1]]) }}"), "a[St]b[['S']]");
  EXPECT_EQ(RenderOrigins("{{ (s[:1] ~ '%d') % 7 }}{{ strftime_now(s[:1] ~ '%d') }}"), "[S]7[S]31");
}

}  // namespace
}  // namespace pith::jinja
