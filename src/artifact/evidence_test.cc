#include "artifact/evidence.h"

#include <cmath>

#include "base/file.h"
#include "base/sha256.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::HasSubstr;

EvidenceRecord Record(const std::string& metric, std::optional<double> temperature = std::nullopt, double value = 0.05) {
  return {
      .conditions =
          {.metric = metric, .slice = "code", .temperature = temperature, .context = 512, .kv_cache = "bf16", .data_path = "W4A16/int16"},
      .n = 6144,
      .value = value,
      .low = value - 0.01,
      .high = value + 0.01,
      .verdict = EvidenceVerdict::kOk,
      .command = "pith eval a --reference b",
      .version = "0.1.0",
      .date = "2026-11-30T12:00:00Z"};
}

Evidence Example() {
  return {.artifact_sha256 = Sha256Hex("artifact"),
          .reference_sha256 = Sha256Hex("reference"),
          .records = {Record("kl_mean"), Record("accuracy_delta", 0.1)}};
}

TEST(Evidence, IsReadAsItWasWritten) {
  Evidence evidence = Example();
  evidence.records[1].verdict = EvidenceVerdict::kRegression;
  evidence.records[1].value = -1.0 / 3;
  evidence.records[1].low = -1;
  evidence.records[0].verdict = EvidenceVerdict::kUnknown;
  const auto read = ParseEvidence(DumpJson(ToJson(evidence), 1));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, evidence);
}

TEST(Evidence, NamesWhatIsWrong) {
  const auto message = [](auto change) {
    OrderedJson json = ToJson(Example());
    change(json);
    return std::string(ParseEvidence(DumpJson(json)).status().message());
  };
  EXPECT_THAT(message([](OrderedJson& j) { j["version"] = 2; }), HasSubstr("version"));
  EXPECT_THAT(message([](OrderedJson& j) { j["artifact_sha256"] = "abc"; }), HasSubstr("artifact_sha256"));
  EXPECT_THAT(message([](OrderedJson& j) { j.erase("records"); }), HasSubstr("\"records\": expected an array, found nothing"));
  EXPECT_THAT(message([](OrderedJson& j) { j["records"][1] = 3; }), HasSubstr("records[1]: expected an object"));
  EXPECT_THAT(message([](OrderedJson& j) { j["records"][1].erase("metric"); }), HasSubstr("records[1]"));
  EXPECT_THAT(message([](OrderedJson& j) { j["records"][0]["slice"] = ""; }), HasSubstr("records[0]: \"slice\": expected a name"));
  EXPECT_THAT(message([](OrderedJson& j) { j["records"][0]["temperature"] = -1; }), HasSubstr("temperature"));
  EXPECT_THAT(message([](OrderedJson& j) { j["records"][0]["value"] = "x"; }), HasSubstr("value"));
  EXPECT_THAT(message([](OrderedJson& j) { j["records"][0]["ci95"] = {2, 1}; }), HasSubstr("ascending"));
  EXPECT_THAT(message([](OrderedJson& j) { j["records"][0]["ci95"] = {1}; }), HasSubstr("two numbers"));
  EXPECT_THAT(message([](OrderedJson& j) { j["records"][0]["verdict"] = "fine"; }), HasSubstr("regression"));
  EXPECT_FALSE(ParseEvidence("[]").ok());
}

TEST(Evidence, IsBoundToTheArtifact) {
  const Evidence evidence = Example();
  EXPECT_TRUE(CheckEvidenceBinding(evidence, Sha256Hex("artifact")).ok());
  const absl::Status other = CheckEvidenceBinding(evidence, Sha256Hex("changed"));
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(other.message()), HasSubstr(Sha256Hex("changed")));
}

TEST(Evidence, AttachingReplacesWhatWasMeasuredUnderTheSameConditionsAndKeepsTheRest) {
  const ScratchDirectory scratch;
  ASSERT_FALSE((*ReadEvidence(scratch.path())).has_value());
  ASSERT_TRUE(AttachEvidence(scratch.path(), Example(), nullptr).ok());
  Evidence later = Example();
  later.records = {Record("kl_mean", std::nullopt, 0.07), Record("kl_mean", 0.1)};
  int64_t dropped = -1;
  ASSERT_TRUE(AttachEvidence(scratch.path(), later, &dropped).ok());
  EXPECT_EQ(dropped, 0);
  Evidence expected = Example();
  expected.records[0] = later.records[0];
  expected.records.push_back(later.records[1]);
  EXPECT_EQ(**ReadEvidence(scratch.path()), expected);
}

TEST(Evidence, OfAnotherArtifactOrReferenceIsDropped) {
  const ScratchDirectory scratch;
  ASSERT_TRUE(AttachEvidence(scratch.path(), Example(), nullptr).ok());
  for (std::string Evidence::*const hash : {&Evidence::artifact_sha256, &Evidence::reference_sha256}) {
    Evidence other = **ReadEvidence(scratch.path());
    const auto before = static_cast<int64_t>(other.records.size());
    other.*hash = Sha256Hex("other");
    other.records = {Record("same_top")};
    int64_t dropped = -1;
    ASSERT_TRUE(AttachEvidence(scratch.path(), other, &dropped).ok());
    EXPECT_EQ(dropped, before);
    EXPECT_EQ(**ReadEvidence(scratch.path()), other);
  }
}

TEST(Evidence, OfAGgufFileLiesBesideIt) {
  const ScratchDirectory scratch;
  const std::string model = scratch.File("model.gguf");
  ASSERT_TRUE(WriteFileAtomically(model, "GGUF").ok());
  ASSERT_TRUE(AttachEvidence(model, Example(), nullptr).ok());
  EXPECT_TRUE(FileExists(scratch.File("model.gguf.evidence.json")));
  EXPECT_EQ(**ReadEvidence(model), Example());
}

TEST(Evidence, ThatCannotBeReadIsNotOverwritten) {
  const ScratchDirectory scratch;
  ASSERT_TRUE(WriteFileAtomically(scratch.File("evidence.json"), "{").ok());
  EXPECT_EQ(AttachEvidence(scratch.path(), Example(), nullptr).code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(ReadEvidence(scratch.path()).status().message()), HasSubstr("evidence.json"));
  EXPECT_EQ(*ReadFile(scratch.File("evidence.json")), "{");
}

}  // namespace
}  // namespace pith
