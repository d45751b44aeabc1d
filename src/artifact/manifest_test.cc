#include "artifact/manifest.h"

#include "absl/strings/str_replace.h"
#include "artifact/test_files.h"
#include "base/sha256.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::HasSubstr;

Manifest Example() {
  Manifest manifest;
  manifest.pith_version = "0.1.0";
  manifest.files["config.json"] = {2, Sha256Hex("{}")};
  manifest.files["model.safetensors"] = {3, Sha256Hex("abc")};
  manifest.source_fingerprint = Sha256Hex("source");
  manifest.recipe = {{"scheme", "W4A16"}, {"method", "rtn"}};
  manifest.layers = {{{"name", "model.layers.0.mlp.up_proj"}, {"relative_error", 0.07}}};
  return manifest;
}

TEST(Manifest, RoundTrip) {
  const std::string text = DumpJson(ToJson(Example()), 2);
  const auto parsed = ParseManifest(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->pith_version, "0.1.0");
  EXPECT_EQ(parsed->files, Example().files);
  EXPECT_EQ(parsed->source_fingerprint, Sha256Hex("source"));
  EXPECT_TRUE(parsed->calibration_sha256.empty());
  EXPECT_EQ(parsed->recipe["scheme"], "W4A16");
  EXPECT_EQ(parsed->layers[0]["relative_error"], 0.07);
  EXPECT_TRUE(parsed->data_path.is_null());
  const Json json = *ParseJson(text);
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["files"]["model.safetensors"]["size"], 3);
  EXPECT_EQ(json["source"]["fingerprint"], Sha256Hex("source"));
  EXPECT_TRUE(json["calibration_sha256"].is_null());
}

TEST(Manifest, RefusesWhatItCannotTrust) {
  const std::string good = DumpJson(ToJson(Example()));
  const auto error = [&](const std::string& from, const std::string& to) {
    const auto parsed = ParseManifest(absl::StrReplaceAll(good, {{from, to}}));
    return parsed.ok() ? "accepted" : std::string(parsed.status().message());
  };
  EXPECT_EQ(error("x", "x"), "accepted");
  EXPECT_THAT(error("\"schema_version\":1", "\"schema_version\":2"),
              HasSubstr("\"schema_version\": expected an integer in [1, 1], found 2"));
  EXPECT_THAT(error("\"pith_version\"", "\"other\""), HasSubstr("\"pith_version\": expected a string"));
  EXPECT_THAT(error("\"files\"", "\"fils\""), HasSubstr("\"files\": expected an object"));
  EXPECT_THAT(error("config.json", "../config.json"), HasSubstr("expected plain file names, found \"../config.json\""));
  EXPECT_THAT(error("config.json", ".."), HasSubstr("expected plain file names"));
  EXPECT_THAT(error("\"size\":3", "\"size\":-3"), HasSubstr("model.safetensors: \"size\": expected an integer"));
  EXPECT_THAT(error(Sha256Hex("abc"), "abc"), HasSubstr("model.safetensors: \"sha256\": expected 64 lower-case hex digits, found \"abc\""));
  EXPECT_THAT(std::string(ParseManifest("[]").status().message()), HasSubstr("schema_version"));
}

TEST(Manifest, VerifyFindsTheFirstDifference) {
  const ScratchDirectory scratch;
  const auto verify = [&] { return VerifyManifest(scratch.path()); };
  EXPECT_EQ(verify().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(ReadManifest(scratch.path())->has_value());
  WriteTestFile(scratch.File("pith.json"), DumpJson(ToJson(Example()), 2));
  WriteTestFile(scratch.File("config.json"), "{}");
  EXPECT_THAT(verify().message(), HasSubstr("model.safetensors: expected a file of 3 bytes, found none"));
  WriteTestFile(scratch.File("model.safetensors"), "abcd");
  EXPECT_THAT(verify().message(), HasSubstr("model.safetensors: expected 3 bytes, found 4"));
  WriteTestFile(scratch.File("model.safetensors"), "abd");
  EXPECT_THAT(verify().message(),
              HasSubstr(absl::StrCat("model.safetensors: expected SHA-256 ", Sha256Hex("abc"), ", found ", Sha256Hex("abd"))));
  EXPECT_EQ(verify().code(), absl::StatusCode::kDataLoss);
  WriteTestFile(scratch.File("model.safetensors"), "abc");
  EXPECT_TRUE(verify().ok()) << verify();
  WriteTestFile(scratch.File("evidence.json"), "{}");
  WriteTestFile(scratch.File(".gitattributes"), "");
  EXPECT_TRUE(verify().ok());
  WriteTestFile(scratch.File("chat_template.jinja"), "x");
  EXPECT_THAT(verify().message(), HasSubstr("chat_template.jinja: expected only files of the manifest, found this one"));
  WriteTestFile(scratch.File("pith.json"), "{");
  EXPECT_THAT(verify().message(), HasSubstr("pith.json: JSON: "));
}

}  // namespace
}  // namespace pith
