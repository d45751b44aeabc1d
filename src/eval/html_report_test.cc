#include "eval/html_report.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::HasSubstr;
using testing::Not;

OrderedJson Interval(double value) { return {{"value", value}, {"ci95", {value - 0.01, value + 0.01}}, {"n", 6144}}; }

OrderedJson Example() {
  const OrderedJson served = {{"temperature", 0.1}, {"total_variation_mean", Interval(0.12)}};
  const OrderedJson metrics = {{"kl_mean", Interval(0.0556)},
                               {"same_top", Interval(0.86)},
                               {"ppl_ratio", Interval(1.057)},
                               {"served", OrderedJson::array({served})}};
  const OrderedJson model = {
      {"path", "out/w4"},
      {"data_path", "W4A16/int16"},
      {"kv_cache", "bf16"},
      {"bytes", 113100000},
      {"sha256", "abc123"},
      {"metrics", metrics},
      {"slices", {{"code", metrics}, {"math", metrics}}},
      {"gate", {{{"outcome", "passed"}, {"reason", "fine"}}, {{"outcome", "failed"}, {"reason", "kl_mean of code is 0.3"}}}},
      {"kl_histogram", {{"edges", {0.001, 0.01, 0.1}}, {"counts", {30, 4}}}},
      {"blocks", {{{"layer", 0}, {"local", {{"relative_error", 0.1}}}, {"accumulated", {{"relative_error", 0.2}}}}}},

      {"worst_tokens",
       {{{"before", "def f("},
         {"token_text", "x"},
         {"slice", "code"},
         {"kl", 4.5},
         {"reference_top_text", "y"},
         {"model_top_text", "z"}}}}};
  OrderedJson smaller = model;
  smaller["path"] = "out/w3";
  smaller["bytes"] = 90900000;
  smaller.erase("gate");
  return {{"reference", "models/dense"}, {"reference_bytes", 269000000}, {"command", "pith eval out/w4"}, {"models", {model, smaller}}};
}

TEST(HtmlReport, SaysTheVerdictFirstAndThenEverythingThatWasMeasured) {
  const std::string html = RenderHtmlReport(Example());
  size_t place = 0;
  for (const char* part : {"class=\"verdict failed\"", "kl_mean of code is 0.3", "Size and quality", "113.1", "0.420", "Slices",
                           "0.0556 <small>[0.0456, 0.0656]</small>", "As served", "0.12 <small>", "How KL is spread",
                           "Error layer by layer", "Worst tokens", "<mark>x</mark>", "abc123"}) {
    place = html.find(part, place);
    ASSERT_NE(place, std::string::npos) << part << " is missing, or stands before what it should follow";
  }
}

TEST(HtmlReport, NeedsNothingFromOutside) {
  const std::string html = RenderHtmlReport(Example());
  for (const char* outside : {"http:", "https:", "src=", "<link", "@import", "url(", "<script"}) EXPECT_THAT(html, Not(HasSubstr(outside)));
}

TEST(HtmlReport, LeavesOutWhatWasNotMeasured) {
  const std::string html = RenderHtmlReport({{"reference", "a"}, {"models", {{{"path", "b"}, {"metrics", {{"kl_mean", Interval(0.1)}}}}}}});
  EXPECT_THAT(html, HasSubstr("No gate was given"));
  for (const char* absent : {"As served", "Worst tokens", "Error layer", "Tasks"}) EXPECT_THAT(html, Not(HasSubstr(absent)));
  EXPECT_THAT(RenderHtmlReport(OrderedJson::object()), HasSubstr("</html>"));
  EXPECT_THAT(RenderHtmlReport({{"models", 3}}), HasSubstr("</html>"));
}

TEST(HtmlReport, TextOfModelsCannotBecomeMarkup) {
  OrderedJson result = Example();
  const std::string evil = "<img onerror=x>";
  result["reference"] = evil;
  result["models"][0]["path"] = evil;
  result["models"][0]["worst_tokens"][0]["before"] = evil;
  result["models"][0]["gate"][1]["reason"] = evil;
  result["models"][0]["slices"] = OrderedJson{{evil, result["models"][0]["metrics"]}};
  EXPECT_THAT(RenderHtmlReport(result), Not(HasSubstr("<img")));
}

TEST(HtmlReport, AGateWithAnUndecidedLineHasNotPassed) {
  OrderedJson result = Example();
  result["models"][0]["gate"][1]["outcome"] = "undecided";
  EXPECT_THAT(RenderHtmlReport(result), HasSubstr("class=\"verdict undecided\""));
  result["models"][0]["gate"][1]["outcome"] = "passed";
  EXPECT_THAT(RenderHtmlReport(result), HasSubstr("class=\"verdict passed\""));
}

}  // namespace
}  // namespace pith
