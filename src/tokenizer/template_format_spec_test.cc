#include "tokenizer/template_format_spec.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace pith::jinja {
namespace {

std::string Integer(absl::string_view spec, int64_t number) {
  const absl::StatusOr<FormatSpec> parsed = ParseFormatSpec(spec);
  if (!parsed.ok()) return "ERROR";
  return FormatInteger(*parsed, number).value_or("ERROR");
}
std::string Real(absl::string_view spec, double number) {
  const absl::StatusOr<FormatSpec> parsed = ParseFormatSpec(spec);
  if (!parsed.ok()) return "ERROR";
  return FormatReal(*parsed, number).value_or("ERROR");
}

TEST(TemplateFormatSpec, ParsesEveryPart) {
  const absl::StatusOr<FormatSpec> spec = ParseFormatSpec("é^+#012,.3f");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->fill, "é");
  EXPECT_EQ(spec->align, '^');
  EXPECT_EQ(spec->sign, '+');
  EXPECT_TRUE(spec->alternate);
  EXPECT_EQ(spec->width, 12);
  EXPECT_EQ(spec->grouping, ',');
  EXPECT_EQ(spec->precision, 3);
  EXPECT_EQ(spec->type, 'f');
  EXPECT_EQ(ParseFormatSpec("<<5")->fill, "<");
  EXPECT_EQ(ParseFormatSpec("<5")->fill, " ");
  for (const char* bad : {".", "5.", "5xx", "é5", "100001", ".100001"}) EXPECT_FALSE(ParseFormatSpec(bad).ok()) << bad;
}

// Expected values: Python 3.11.
TEST(TemplateFormatSpec, Integers) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(Integer("", kMin), "-9223372036854775808");
  EXPECT_EQ(Integer("x", kMin), "-8000000000000000");
  EXPECT_EQ(Integer(",", -1234567), "-1,234,567");
  EXPECT_EQ(Integer("#X", 255), "0XFF");
  EXPECT_EQ(Integer("#06x", 255), "0x00ff");
  EXPECT_EQ(Integer("*>+6", 42), "***+42");
  EXPECT_EQ(Integer(".1f", 3), "3.0");
  EXPECT_EQ(Integer("c", 65), "ERROR");
  EXPECT_EQ(Integer("s", 65), "ERROR");
}

TEST(TemplateFormatSpec, Reals) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Real("", -0.0), "-0.0");
  EXPECT_EQ(Real("g", 1e20), "1e+20");
  EXPECT_EQ(Real("#g", 1.0), "1.00000");
  EXPECT_EQ(Real(".0f", 2.5), "2");
  EXPECT_EQ(Real("#.0f", 2.5), "2.");
  EXPECT_EQ(Real("F", -kInfinity), "-INF");
  EXPECT_EQ(Real("06", kInfinity), "000inf");
  EXPECT_EQ(Real("+.1e", std::nan("")), "+nan");
  EXPECT_EQ(Real(".2", 10.0), "1e+01");
  EXPECT_EQ(Real(".2", 1.0), "1.0");
  EXPECT_EQ(Real(".3", 0.00001234), "1.23e-05");
  EXPECT_EQ(Real(",", 1234567.5), "1,234,567.5");
  EXPECT_EQ(Real("%", 0.5), "50.000000%");
  EXPECT_EQ(Real("d", 0.5), "ERROR");
}

TEST(TemplateFormatSpec, Padding) {
  const FormatSpec spec = {.width = 6};
  EXPECT_EQ(PadTo(spec, 4, '<').after, 2);
  EXPECT_EQ(PadTo(spec, 4, '>').before, 2);
  EXPECT_EQ(PadTo({.align = '^', .width = 6}, 3, '<').before, 1);
  EXPECT_EQ(PadTo({.align = '^', .width = 6}, 3, '<').after, 2);
  EXPECT_EQ(PadTo(spec, 9, '<').after, 0);
}

}  // namespace
}  // namespace pith::jinja
