#include "hub/model_lookup.h"

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hub/cache_layout.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

const char kCommit[] = "607a30d783dfa663caf39e06633721c8d4cfcd7e";
const char kHash[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

class ModelLookup : public testing::Test {
 protected:
  ModelLookup() : repo_(*ParseRepoId("a/b")), cache_(scratch_.path(), repo_) {}

  void Put(const std::string& name, const std::string& content = "x") {
    const std::string path = cache_.FilePath(kCommit, name);
    ASSERT_TRUE(CreateDirectories(DirName(path)).ok());
    ASSERT_TRUE(WriteFileAtomically(path, content).ok());
  }
  absl::StatusOr<std::string> Find() { return FindCachedModel(scratch_.path(), repo_); }
  std::string Message() { return std::string(Find().status().message()); }

  ScratchDirectory scratch_;
  const RepoId repo_;
  const RepoCache cache_;
};

TEST_F(ModelLookup, FindsADirectoryOfSafetensors) {
  ASSERT_TRUE(cache_.WriteRef("main", kCommit).ok());
  Put("config.json");
  Put("model.safetensors");
  EXPECT_EQ(*Find(), cache_.SnapshotPath(kCommit));
  EXPECT_EQ(*FindCachedModel(scratch_.path(), *ParseRepoId(absl::StrCat("a/b@", kCommit))), cache_.SnapshotPath(kCommit));
}

TEST_F(ModelLookup, WhatIsNotThereIsExit66WithTheCommandToRun) {
  EXPECT_EQ(ToExitCode(Find().status()), kExitMissingInput);
  EXPECT_THAT(Message(), HasSubstr("a/b: not in the cache"));
  EXPECT_THAT(Message(), HasSubstr("`pith pull a/b`"));
  ASSERT_TRUE(cache_.WriteRef("main", kCommit).ok());
  EXPECT_THAT(Message(), HasSubstr("not in the cache"));
  const auto other = FindCachedModel(scratch_.path(), *ParseRepoId("a/b@v2"));
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("`pith pull a/b@v2`"));
}

TEST_F(ModelLookup, APartOfAModelIsNone) {
  ASSERT_TRUE(cache_.WriteRef("main", kCommit).ok());
  Put("config.json");
  EXPECT_EQ(ToExitCode(Find().status()), kExitMissingInput);
  EXPECT_THAT(Message(), HasSubstr("no model.safetensors"));
  Put("model.safetensors.index.json", R"({"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors"}})");
  Put("model-1.safetensors");
  EXPECT_THAT(Message(), HasSubstr("no model-2.safetensors"));
  ASSERT_TRUE(cache_.LinkFile(kCommit, "model-2.safetensors", kHash).ok());  // to a blob that is not there yet
  EXPECT_THAT(Message(), HasSubstr("no model-2.safetensors"));
  ASSERT_TRUE(CreateDirectories(DirName(cache_.BlobPath(kHash))).ok());
  ASSERT_TRUE(WriteFileAtomically(cache_.BlobPath(kHash), "x").ok());
  EXPECT_EQ(*Find(), cache_.SnapshotPath(kCommit));
}

TEST_F(ModelLookup, FindsTheOnlyGgufFile) {
  ASSERT_TRUE(cache_.WriteRef("main", kCommit).ok());
  Put("config.json");
  Put("q/x-Q4_0.gguf");
  EXPECT_EQ(*Find(), cache_.FilePath(kCommit, "q/x-Q4_0.gguf"));
  Put("y.gguf");
  EXPECT_EQ(ToExitCode(Find().status()), kExitUsage);
  EXPECT_THAT(Message(), HasSubstr("give the path of one"));
  Put("model.safetensors");
  EXPECT_EQ(*Find(), cache_.SnapshotPath(kCommit));
}

}  // namespace
}  // namespace pith
