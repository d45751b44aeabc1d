#include "hub/file_selection.h"

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<RepoFile> Listing(const std::vector<std::string>& names) {
  std::vector<RepoFile> listing;
  for (const std::string& name : names)
    listing.push_back({.name = name, .size = 1, .id = {ContentId::Kind::kGitSha1, std::string(40, 'a')}});
  return listing;
}

std::vector<std::string> Names(const FileSelection& selection) {
  std::vector<std::string> names;
  for (const RepoFile& file : selection.files) names.push_back(file.name);
  return names;
}

absl::Status Refusal(const std::vector<std::string>& names, const std::vector<std::string>& include = {}) {
  return SelectFiles(Listing(names), include).status();
}

TEST(FileSelection, TakesWhatTheModelNeedsAndNothingElse) {
  const auto selection = *SelectFiles(
      Listing({".gitattributes", "LICENSE.txt", "README.md", "config.json", "consolidated.safetensors", "merges.txt", "model.safetensors",
               "onnx/model.onnx", "original/LICENSE", "pytorch_model.bin", "tokenizer.json", "q/x.gguf"}),
      {});
  EXPECT_THAT(Names(selection), ElementsAre("config.json", "tokenizer.json", "merges.txt", "LICENSE.txt", "model.safetensors"));
  EXPECT_FALSE(selection.index_names_more);
  EXPECT_THAT(selection.absent, Contains("added_tokens.json"));
  EXPECT_THAT(selection.absent, Contains("model.safetensors.index.json"));
  EXPECT_THAT(selection.absent, Not(Contains("tokenizer.json")));
}

TEST(FileSelection, AnIndexNamesTheShards) {
  const auto listing = Listing({"config.json", "model-1.safetensors", "model-2.safetensors", "consolidated.safetensors", kIndexFileName});
  FileSelection selection = *SelectFiles(listing, {});
  EXPECT_TRUE(selection.index_names_more);
  EXPECT_THAT(Names(selection), ElementsAre("config.json", kIndexFileName));
  ASSERT_TRUE(AddShards(listing, R"({"weight_map":{"a":"model-2.safetensors","b":"model-1.safetensors"}})", &selection).ok());
  EXPECT_THAT(Names(selection), ElementsAre("config.json", kIndexFileName, "model-1.safetensors", "model-2.safetensors"));
  for (const char* bad : {R"({"weight_map":{"a":"model-3.safetensors"}})", R"({"weight_map":{"a":"config.json"}})", "{}"}) {
    const absl::Status status = AddShards(listing, bad, &selection);
    EXPECT_EQ(ToExitCode(status), kExitBadFile) << bad;
    EXPECT_THAT(std::string(status.message()), HasSubstr(kIndexFileName));
  }
}

TEST(FileSelection, OneFileGoesBeforeAnIndex) {
  const auto selection = *SelectFiles(Listing({"config.json", "model.safetensors", "model-1.safetensors", kIndexFileName}), {});
  EXPECT_THAT(Names(selection), ElementsAre("config.json", "model.safetensors"));
}

TEST(FileSelection, OneGgufIsTakenOfSeveralOneIsAskedFor) {
  EXPECT_THAT(Names(*SelectFiles(Listing({"README.md", "config.json", "x-Q4_K_M.gguf"}), {})), ElementsAre("x-Q4_K_M.gguf"));
  const std::vector<std::string> names = {"README.md", "x-Q4_K_M.gguf", "x-Q8_0.gguf"};
  EXPECT_EQ(ToExitCode(Refusal(names)), kExitUsage);
  EXPECT_THAT(std::string(Refusal(names).message()),
              HasSubstr("--include GLOB to choose among 2 GGUF files, found none; there are x-Q4_K_M.gguf, x-Q8_0.gguf"));
  EXPECT_THAT(Names(*SelectFiles(Listing(names), {"*Q8_0*"})), ElementsAre("x-Q8_0.gguf"));
  EXPECT_EQ(ToExitCode(Refusal(names, {"*q8_0*"})), kExitMissingInput);
  EXPECT_THAT(std::string(Refusal(names, {"*Q5*"}).message()), HasSubstr("matches *Q5*, found only x-Q4_K_M.gguf"));
}

TEST(FileSelection, IncludeMayNameSeveralAndFilesInFolders) {
  const auto listing = Listing(
      {"config.json", "BF16/x-00001-of-00002.gguf", "BF16/x-00002-of-00002.gguf", "tokenizer.json", "a.safetensors"});
  EXPECT_THAT(Names(*SelectFiles(listing, {"BF16/*"})), ElementsAre("BF16/x-00001-of-00002.gguf", "BF16/x-00002-of-00002.gguf"));
  EXPECT_THAT(Names(*SelectFiles(listing, {"*00002.gguf", "*00002.gguf", "tok*"})),
              ElementsAre("BF16/x-00001-of-00002.gguf", "BF16/x-00002-of-00002.gguf", "tokenizer.json"));
  EXPECT_THAT(Names(*SelectFiles(listing, {"a.*"})), ElementsAre("config.json", "tokenizer.json", "a.safetensors"));
}

TEST(FileSelection, PickledWeightsAreRefused) {
  const absl::Status status = Refusal({"config.json", "pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"});
  EXPECT_EQ(ToExitCode(status), kExitNotSupported);
  EXPECT_THAT(std::string(status.message()), HasSubstr("pickled weights (pytorch_model-00001-of-00002.bin, "));
  EXPECT_EQ(ToExitCode(Refusal({"config.json", "model.safetensors", "x.bin"}, {"*.bin"})), kExitNotSupported);
}

TEST(FileSelection, OtherRepositoriesAreRefused) {
  EXPECT_EQ(ToExitCode(Refusal({})), kExitMissingInput);
  EXPECT_EQ(ToExitCode(Refusal({"README.md"})), kExitMissingInput);
  EXPECT_EQ(ToExitCode(Refusal({"model.safetensors"})), kExitMissingInput);
  EXPECT_EQ(ToExitCode(Refusal({"adapter_config.json", "adapter_model.safetensors"})), kExitNotSupported);
}

}  // namespace
}  // namespace pith
