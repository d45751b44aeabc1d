#include "cli/bench_row.h"

#include <set>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const BenchModel kModel = {.filename = "dir/\"odd\".gguf",
                           .type = "llama tiny",
                           .data_path = "W4A16/bf16",
                           .build_commit = "0123abcd",
                           .cpu = "A CPU",
                           .file_bytes = 97'200'000,
                           .resident_bytes = 98'000'000,
                           .num_params = 134'500'000};

BenchRow DecodeRow() {
  BenchRow row;
  row.test = {BenchKind::kDecode, 128, 2, 4096};
  row.samples_ns = {2e9, 1e9, 4e9};
  row.test_time = "2026-11-30T03:00:00Z";
  row.limits.threads = 2;
  row.limits.read_gb_per_s = 35;
  row.run_roofline = {.read_seconds = 1.5, .multiply_seconds = 0.1};
  return row;
}

std::string Render(const std::string& format, absl::Span<const BenchRow> rows, const BenchModel& model = kModel) {
  RowRenderer renderer(format);
  std::string text;
  for (const BenchRow& row : rows) text += renderer.Row(row, model);
  return text + renderer.End();
}

TEST(BenchTestTest, NamesAreThoseOfLlamaBench) {
  EXPECT_EQ((BenchTest{BenchKind::kPrefill, 512, 1, 0}.Name()), "pp512");
  EXPECT_EQ((BenchTest{BenchKind::kDecode, 128, 4, 4096}.Name()), "tg128 b4 @ d4096");
  EXPECT_EQ((BenchTest{BenchKind::kVerify, 8, 1, 0}.Name()), "verify8");
}

TEST(BenchRowTest, DerivedFigures) {
  const BenchRow row = DecodeRow();
  EXPECT_EQ(row.tokens_per_sample(), 256);
  EXPECT_DOUBLE_EQ(row.median_ns(), 2e9);
  EXPECT_DOUBLE_EQ(row.tokens_per_second(), 128);
  EXPECT_DOUBLE_EQ(row.pass_ms(), 2000.0 / 128);
  EXPECT_DOUBLE_EQ(row.share(), 0.75);
  EXPECT_STREQ(row.bound(), "memory");
  BenchRow verify = row;
  verify.test = {BenchKind::kVerify, 8, 1, 0};
  verify.passes_per_sample = 4;
  verify.run_roofline = {.read_seconds = 0.125, .multiply_seconds = 0.25};
  EXPECT_EQ(verify.tokens_per_sample(), 32);
  EXPECT_DOUBLE_EQ(verify.pass_ms(), 500);
  EXPECT_DOUBLE_EQ(verify.roofline().read_seconds, 0.5);
  EXPECT_DOUBLE_EQ(verify.roofline().multiply_seconds, 1.0);
  EXPECT_DOUBLE_EQ(verify.share(), 0.5);
  EXPECT_STREQ(verify.bound(), "compute");
}

TEST(BenchRowTest, JsonHasTheColumnsOfLlamaBench) {
  const OrderedJson json = ToJson(DecodeRow(), kModel);
  for (const char* key : {"build_commit", "build_number",   "cpu_info",   "gpu_info",  "backends",  "model_filename", "model_type",
                          "model_size",   "model_n_params", "n_batch",    "n_ubatch",  "n_threads", "type_k",         "type_v",
                          "n_gpu_layers", "n_prompt",       "n_gen",      "n_depth",   "test_time", "avg_ns",         "stddev_ns",
                          "avg_ts",       "stddev_ts",      "samples_ns", "samples_ts"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["n_prompt"], 0);
  EXPECT_EQ(json["n_gen"], 128);
  EXPECT_EQ(json["n_depth"], 4096);
  EXPECT_NEAR(json["avg_ns"].get<double>(), 7e9 / 3, 1);
  EXPECT_NEAR(json["avg_ts"].get<double>(), (128 + 256 + 64) / 3.0, 1e-9);
}

TEST(BenchRowTest, CsvQuotesEveryValueAndLeavesTheSamplesOut) {
  const std::vector<BenchRow> rows = {DecodeRow(), DecodeRow()};
  const std::string csv = Render("csv", rows);
  const std::vector<std::string> lines = absl::StrSplit(csv, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[0], StartsWith("build_commit,build_number,cpu_info,"));
  EXPECT_THAT(lines[1], StartsWith("\"0123abcd\",\"0\",\"A CPU\",\"\",\"CPU\",\"dir/\"\"odd\"\".gguf\","));
  EXPECT_THAT(csv, testing::Not(HasSubstr("samples")));
  const std::vector<std::string> keys = absl::StrSplit(lines[0], ','), values = absl::StrSplit(lines[1], "\",\"");
  EXPECT_EQ(keys.size(), values.size());
}

TEST(BenchRowTest, JsonIsAnArrayAndJsonlOneObjectPerLine) {
  const std::vector<BenchRow> rows = {DecodeRow(), DecodeRow()};
  EXPECT_EQ(OrderedJson::parse(Render("json", rows)).size(), 2u);
  const std::string text = Render("jsonl", rows);
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(OrderedJson::parse(lines[1])["test"], "tg128 b2 @ d4096");
}

TEST(BenchRowTest, MarkdownShowsTheShare) {
  const std::vector<BenchRow> rows = {DecodeRow()};
  const std::string text = Render("md", rows);
  EXPECT_THAT(text,
              HasSubstr("| llama tiny | 97.2 MB | 134.50 M | CPU | 2 | tg128 b2 @ d4096 | 149.33 +- 97.76 | 15.625 | 0.75 | memory |"));
}

TEST(BenchRowTest, NanosecondsAreIntegersAsInLlamaBench) {
  BenchRow row = DecodeRow();
  row.samples_ns = {1000000.4, 1000001.5};
  const OrderedJson json = ToJson(row, kModel);
  EXPECT_EQ(json["samples_ns"].dump(), "[1000000,1000002]");
  EXPECT_EQ(json["avg_ns"].dump(), "1000001");
  EXPECT_EQ(json["stddev_ns"].dump(), "1");
}

TEST(RowRendererTest, EveryRowIsWholeWhenItIsPrintedAndTheArrayEndsOnce) {
  RowRenderer json("json"), none("json"), csv("csv");
  EXPECT_EQ(none.End(), "");
  const std::string first = json.Row(DecodeRow(), kModel), second = json.Row(DecodeRow(), kModel);
  EXPECT_EQ(OrderedJson::parse(first + "]").size(), 1u);
  EXPECT_EQ(OrderedJson::parse(first + second + json.End()).size(), 2u);
  EXPECT_EQ(json.End(), "");
  const std::string head_and_row = csv.Row(DecodeRow(), kModel);
  EXPECT_THAT(head_and_row, testing::EndsWith("\n" + csv.Row(DecodeRow(), kModel)));
  EXPECT_EQ(csv.End(), "");
}

TEST(RowRendererTest, NamesCannotBreakTheTableOrReachTheTerminal) {
  BenchModel model = kModel;
  model.type = model.filename = "llama a|b\x1b[31m\n\xff";
  const BenchRow row = DecodeRow();
  EXPECT_THAT(Render("md", {&row, 1}, model), HasSubstr("| llama a\\|b\\x1B[31m\\x0A\\xFF |"));
  EXPECT_THAT(Render("csv", {&row, 1}, model), HasSubstr(",\"llama a|b\\x1B[31m\\x0A\\xFF\","));
}

TEST(UtcTimeTest, HasTheFormOfLlamaBench) { EXPECT_THAT(UtcTime(), testing::MatchesRegex("20..-..-..T..:..:..Z")); }

}  // namespace
}  // namespace pith
