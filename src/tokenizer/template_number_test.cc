#include "tokenizer/template_number.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/random.h"
#include "gtest/gtest.h"

namespace pith::jinja {
namespace {

// Expected values: Python 3.11.
TEST(TemplateNumber, FormatsFloats) {
  EXPECT_EQ(FormatFloat(1.0), "1.0");
  EXPECT_EQ(FormatFloat(-0.0), "-0.0");
  EXPECT_EQ(FormatFloat(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(FormatFloat(1e15), "1000000000000000.0");
  EXPECT_EQ(FormatFloat(1e16), "1e+16");
  EXPECT_EQ(FormatFloat(1.5e-5), "1.5e-05");
  EXPECT_EQ(FormatFloat(0.0001), "0.0001");
  EXPECT_EQ(FormatFloat(123456.789), "123456.789");
  EXPECT_EQ(FormatFloat(-1.7976931348623157e308), "-1.7976931348623157e+308");
  EXPECT_EQ(FormatFloat(5e-324), "5e-324");
  EXPECT_EQ(FormatFloat(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(FormatFloat(std::nan("")), "nan");
}

TEST(TemplateNumber, FormattedFloatsReadBack) {
  RandomStream random(3);
  for (int i = 0; i < 5000; ++i) {
    const double number = std::ldexp(random.Uniform() - 0.5, static_cast<int>(random.Below(200)) - 100);
    const std::string text = FormatFloat(number);
    ASSERT_EQ(std::strtod(text.c_str(), nullptr), number) << text;
    ASSERT_EQ(ParseFloat(text), number) << text;
  }
}

TEST(TemplateNumber, ParsesFloats) {
  EXPECT_EQ(ParseFloat(" 1_000.5e-1\n"), 100.05);
  EXPECT_EQ(ParseFloat("-.5"), -0.5);
  EXPECT_EQ(ParseFloat("5."), 5.0);
  EXPECT_EQ(ParseFloat("+Infinity"), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(*ParseFloat("NaN")));
  for (absl::string_view bad : {"", " ", ".", "1e", "0x10", "1__0", "_1", "1_", "1 2", "--1", "e5", "1._5"})
    EXPECT_FALSE(ParseFloat(bad)) << bad;
}

TEST(TemplateNumber, ParsesIntegers) {
  EXPECT_EQ(**ParseInteger(" -4_2\t", 10), -42);
  EXPECT_EQ(**ParseInteger("ff", 16), 255);
  EXPECT_EQ(**ParseInteger("0xFF", 16), 255);
  EXPECT_EQ(**ParseInteger("0b101", 0), 5);
  EXPECT_EQ(**ParseInteger("00", 0), 0);
  EXPECT_EQ(**ParseInteger("-9223372036854775808", 10), std::numeric_limits<int64_t>::min());
  for (absl::string_view bad : {"", "1.5", "0x10", "12a", "1__2", "+-1"}) EXPECT_FALSE(ParseInteger(bad, 10)->has_value()) << bad;
  EXPECT_FALSE(ParseInteger("012", 0)->has_value());
  EXPECT_FALSE(ParseInteger("9223372036854775808", 10).ok());
  EXPECT_FALSE(ParseInteger("1", 1).ok());
}

TEST(TemplateNumber, RoundsToEven) {
  EXPECT_EQ(RoundToDigits(2.5, 0), 2.0);
  EXPECT_EQ(RoundToDigits(3.5, 0), 4.0);
  EXPECT_EQ(RoundToDigits(2.675, 2), 2.67);
  EXPECT_EQ(RoundToDigits(1234.5, -2), 1200.0);
  EXPECT_EQ(RoundToDigits(150.0, -2), 200.0);
  EXPECT_EQ(RoundToDigits(250.0, -2), 200.0);
  EXPECT_EQ(*RoundToDigits(int64_t{250}, -2), 200);
  EXPECT_EQ(*RoundToDigits(int64_t{-350}, -2), -400);
  EXPECT_EQ(*RoundToDigits(int64_t{1234}, 3), 1234);
}

TEST(TemplateNumber, DividesDownwards) {
  EXPECT_EQ(*FloorDivideIntegers(-7, 2), -4);
  EXPECT_EQ(*RemainderOfIntegers(-7, 2), 1);
  EXPECT_EQ(*RemainderOfIntegers(7, -2), -1);
  EXPECT_EQ(*FloorDivideFloats(-7.5, 2), -4.0);
  EXPECT_EQ(*RemainderOfFloats(-7.5, 2), 0.5);
  EXPECT_FALSE(FloorDivideIntegers(1, 0).ok());
  EXPECT_FALSE(RemainderOfFloats(1, 0).ok());
  EXPECT_FALSE(FloorDivideIntegers(std::numeric_limits<int64_t>::min(), -1).ok());
  EXPECT_EQ(*RemainderOfIntegers(std::numeric_limits<int64_t>::min(), -1), 0);
}

TEST(TemplateNumber, PowersAndOverflow) {
  EXPECT_EQ(*PowerOfIntegers(-3, 3), -27);
  EXPECT_EQ(*PowerOfIntegers(2, 62), int64_t{1} << 62);
  EXPECT_EQ(*PowerOfIntegers(-1, 1'000'000'000'001), -1);
  EXPECT_FALSE(PowerOfIntegers(2, 63).ok());
  EXPECT_FALSE(PowerOfFloats(0, -1).ok());
  EXPECT_FALSE(PowerOfFloats(-8, 0.5).ok());
  EXPECT_FALSE(PowerOfFloats(1e308, 2).ok());
  EXPECT_FALSE(AddIntegers(std::numeric_limits<int64_t>::max(), 1).ok());
  EXPECT_FALSE(TruncateToInteger(1e19).ok());
  EXPECT_FALSE(TruncateToInteger(std::nan("")).ok());
  EXPECT_EQ(*TruncateToInteger(-2.9), -2);
}

}  // namespace
}  // namespace pith::jinja
