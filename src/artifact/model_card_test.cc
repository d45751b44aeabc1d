#include "artifact/model_card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_util.h"

namespace pith {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Manifest Quantized() {
  Manifest manifest = {.pith_version = "0.1.0", .source_fingerprint = std::string(64, 'a')};
  manifest.files["model.safetensors"] = {.size = 1'500'000, .sha256 = std::string(64, 'b')};
  manifest.files["config.json"] = {.size = 500'000, .sha256 = std::string(64, 'c')};
  manifest.recipe = OrderedJson::parse(R"({"scheme": "W4A16", "method": "awq+gptq", "kv_cache": null,
      "calibration": {"source": "files", "samples": 24, "tokens": 12288, "domain_tokens": {"code": 8192, "wiki": 4096}}})");
  manifest.layers = OrderedJson::parse(R"([{"name": "a", "relative_error": 0.1}, {"name": "b|c", "relative_error": 0.3}, {"name": "d"}])");
  return manifest;
}

Evidence Measured() {
  Evidence evidence = {.artifact_sha256 = std::string(64, 'd'), .reference_sha256 = std::string(64, 'e')};
  evidence.records.push_back(
      {.conditions = {.metric = "kl_mean", .slice = "code", .context = 512, .kv_cache = "bf16", .data_path = "W4A16/int16"},
       .n = 6144,
       .value = 0.05,
       .low = 0.04,
       .high = 0.0625,
       .verdict = EvidenceVerdict::kOk,
       .command = "pith eval",
       .version = "0.1.0",
       .date = "2026-12-01T00:00:00Z"});
  evidence.records.push_back(evidence.records.back());
  evidence.records.back().conditions.metric = "accuracy_delta";
  evidence.records.back().conditions.temperature = 0.1;
  return evidence;
}

TEST(ModelCardTest, SaysWhatTheArtifactIsAndThatNothingWasMeasured) {
  const std::string card = RenderModelCard(Quantized(), std::nullopt);
  EXPECT_THAT(card, StartsWith("---\ntags:\n- pith\n- quantized\n---\n"));
  for (const char* text :
       {"# W4A16 by awq+gptq\n", "| calibration | files, 12288 tokens in 24 samples (code 8192, wiki 4096) |", "| files | 2, 2.0 MB |",
        "| relative error of the weights | 0.2000 on average over 2 matrices, worst 0.3000 (b\\|c) |", "Nothing has been measured yet"}) {
    EXPECT_THAT(card, HasSubstr(text));
  }
  EXPECT_THAT(card, Not(HasSubstr("KV cache |")));
}

TEST(ModelCardTest, ShowsEveryFigureWithItsConditions) {
  const std::string card = RenderModelCard(Quantized(), Measured());
  EXPECT_THAT(card, HasSubstr("| kl_mean | code | - | 512 | bf16 | 6144 | 0.05 [0.04, 0.0625] | ok |\n"));
  EXPECT_THAT(card, HasSubstr("| accuracy_delta | code | 0.1 | 512 | bf16 | 6144 | 0.05 [0.04, 0.0625] | ok |\n"));
  EXPECT_THAT(card, HasSubstr(std::string(64, 'e')));
}

TEST(ModelCardTest, AConvertedModelHasACardToo) {
  const std::string card = RenderModelCard({.pith_version = "0.1.0"}, std::nullopt);
  EXPECT_THAT(card, HasSubstr("# A model converted by pith\n"));
  EXPECT_THAT(card, Not(HasSubstr("quantized")));
}

TEST(ModelCardTest, OnlyWhatStandsBetweenTheMarksIsRewritten) {
  const std::string card = absl::StrCat("my words\n", RenderModelCard(Quantized(), std::nullopt), "my other words\n");
  const std::optional<std::string> fresh = UpdateModelCard(card, Quantized(), Measured());
  ASSERT_TRUE(fresh.has_value());
  EXPECT_EQ(*fresh, absl::StrCat("my words\n", RenderModelCard(Quantized(), Measured()), "my other words\n"));
  EXPECT_EQ(*UpdateModelCard(*fresh, Quantized(), Measured()), *fresh);
  EXPECT_FALSE(UpdateModelCard("# Somebody's card\n", Quantized(), Measured()).has_value());
  EXPECT_FALSE(UpdateModelCard(card.substr(0, card.find("Nothing")), Quantized(), Measured()).has_value());
}

TEST(ModelCardTest, ADirectorysCardIsBroughtUpToDate) {
  const ScratchDirectory scratch;
  const std::string path = scratch.File("README.md");
  ASSERT_TRUE(RefreshModelCard(scratch.path()).ok());
  EXPECT_FALSE(FileExists(path)) << "no manifest, no card";
  ASSERT_TRUE(WriteFileAtomically(scratch.File("pith.json"), DumpJson(ToJson(Quantized()), 2)).ok());
  ASSERT_TRUE(RefreshModelCard(scratch.path()).ok());
  EXPECT_EQ(*ReadFile(path), RenderModelCard(Quantized(), std::nullopt));
  ASSERT_TRUE(WriteFileAtomically(scratch.File("evidence.json"), DumpJson(ToJson(Measured()), 2)).ok());
  ASSERT_TRUE(RefreshModelCard(scratch.path()).ok());
  EXPECT_THAT(*ReadFile(path), HasSubstr("accuracy_delta"));
  ASSERT_TRUE(WriteFileAtomically(path, "# Mine\n").ok());
  ASSERT_TRUE(RefreshModelCard(scratch.path()).ok());
  EXPECT_EQ(*ReadFile(path), "# Mine\n");
}

}  // namespace
}  // namespace pith
