#include "eval/svg_charts.h"

#include <cmath>
#include <limits>
#include <regex>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Numbers of an attribute, in order.
std::vector<double> Numbers(const std::string& svg, const std::string& attribute) {
  std::vector<double> numbers;
  const std::regex pattern(" " + attribute + "=\"(-?[0-9.]+)\"");
  for (std::sregex_iterator i(svg.begin(), svg.end(), pattern), end; i != end; ++i) numbers.push_back(std::stod((*i)[1]));
  return numbers;
}

// Every opened element is closed, in order; attributes are quoted.
void ExpectWellFormed(const std::string& svg) {
  std::vector<std::string> open;
  const std::regex tag("<(/?)([a-z]+)((?: [a-zA-Z0-9-]+=\"[^\"<>]*\")*)(/?)>");
  std::string rest = std::regex_replace(svg, tag, "");
  EXPECT_THAT(rest, Not(HasSubstr("<")));
  for (std::sregex_iterator i(svg.begin(), svg.end(), tag), end; i != end; ++i) {
    if ((*i)[4].length() > 0) continue;
    if ((*i)[1].length() == 0) {
      open.push_back((*i)[2]);
    } else {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), (*i)[2]);
      open.pop_back();
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(SvgCharts, LabelsCannotBecomeMarkup) {
  EXPECT_EQ(EscapeHtml("a<b>&\"c'\n"), "a&lt;b&gt;&amp;&quot;c&#39;\n");
  EXPECT_EQ(EscapeHtml(absl::string_view("\x01\xFF\x7F", 3)), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  const std::string evil = "<script>\"'&";
  for (const std::string& svg : {IntervalBarChart({{evil, 1, 0, 2}}, 0, 3), HistogramChart({0, 1}, {3}, evil),
                                 LineChart({{evil, {1, 2}}}, 0, evil, evil), FrontierChart({{evil, 1, 1}}, evil, evil)}) {
    EXPECT_THAT(svg, Not(HasSubstr("<script>")));
    ExpectWellFormed(svg);
  }
}

TEST(SvgCharts, BarsAreAsLongAsTheirValues) {
  const std::string svg = IntervalBarChart({{"one", 1, 0.5, 1.5}, {"two", 2, 1.5, 2.5}, {"four", 4, 3, 5}}, 0, 3);
  const std::vector<double> width = Numbers(svg, "width");
  ASSERT_EQ(width.size(), 3u);
  EXPECT_NEAR(width[1] / width[0], 2, 0.02);
  EXPECT_NEAR(width[2] / width[0], 4, 0.04);
  EXPECT_THAT(svg, HasSubstr("4 [3, 5]"));
}

TEST(SvgCharts, BarsGoBothWaysFromTheOrigin) {
  const std::string svg = IntervalBarChart({{"down", -1, -2, 0}, {"up", 1, 0, 2}}, 0, 3);
  const std::vector<double> x = Numbers(svg, "x"), width = Numbers(svg, "width");
  EXPECT_NEAR(width[0], width[1], 0.11);
  ASSERT_EQ(x.size(), 6u);  // label, bar, value, twice
  EXPECT_NEAR(x[1] + width[0], x[4], 0.11);
}

TEST(SvgCharts, TheLargestCountFillsTheHeight) {
  const std::vector<double> height = Numbers(HistogramChart({0, 1, 2, 3}, {10, 0, 5}, "KL"), "height");
  EXPECT_THAT(height, ElementsAre(240, 0, 120));
  ExpectWellFormed(HistogramChart({}, {}, "nothing"));
  EXPECT_THAT(Numbers(HistogramChart({0, 1}, {0}, "KL"), "height"), ElementsAre(0));
}

TEST(SvgCharts, ALineHasAGapWhereThereIsNoNumber) {
  const std::string svg = LineChart({{"a", {0, 1, std::nan(""), 1}}}, 0, "layer", "error");
  EXPECT_THAT(svg, HasSubstr("d=\"M64.0 252.0L250.7 12.0M624.0 12.0\""));
  ExpectWellFormed(svg);
  ExpectWellFormed(LineChart({}, 0, "layer", "error"));
  ExpectWellFormed(LineChart({{"a", {std::numeric_limits<double>::infinity()}}}, 0, "layer", "error"));
}

TEST(SvgCharts, TheFrontierIsWhatNothingBeats) {
  const std::vector<ScatterPoint> points = {{"big", 4, 0.1}, {"small", 1, 0.5}, {"beaten", 3, 0.6}, {"middle", 2, 0.3}, {"twin", 2, 0.3}};
  EXPECT_THAT(Frontier(points), ElementsAre(1, 3, 0));
  EXPECT_TRUE(Frontier({}).empty());
  const std::string svg = FrontierChart(points, "MB", "KL");
  EXPECT_EQ(Numbers(svg, "cx").size(), 5u);
  for (const double x : Numbers(svg, "cx")) EXPECT_TRUE(x >= 0 && x <= 640);
  ExpectWellFormed(svg);
}

}  // namespace
}  // namespace pith
