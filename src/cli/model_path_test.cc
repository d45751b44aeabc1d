#include "cli/model_path.h"

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hub/cache_layout.h"
#include "hub/repo_id.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

const char kCommit[] = "607a30d783dfa663caf39e06633721c8d4cfcd7e";

// A cache of its own and an empty working directory.
class ModelPathTest : public testing::Test {
 protected:
  ModelPathTest() : before_(std::filesystem::current_path()), cache_(scratch_.File("hub"), *ParseRepoId("org/name")) {
    setenv("HF_HUB_CACHE", scratch_.File("hub").c_str(), 1);
    std::filesystem::current_path(scratch_.path());
  }
  ~ModelPathTest() override {
    unsetenv("HF_HUB_CACHE");
    std::filesystem::current_path(before_);
  }

  ScratchDirectory scratch_;
  const std::filesystem::path before_;
  const RepoCache cache_;
};

TEST_F(ModelPathTest, PathsStayAsTheyAre) {
  ASSERT_TRUE(CreateDirectories("org/name").ok());
  EXPECT_EQ(*FindModelPath("org/name"), "org/name");  // before any repository of that name
  EXPECT_EQ(*FindModelPath(scratch_.path()), scratch_.path());
  for (const char* no_repository : {"nowhere", "./a/b", "/a/b", "a/b/c", "x.gguf", ""})
    EXPECT_EQ(*FindModelPath(no_repository), no_repository);
}

TEST_F(ModelPathTest, RepositoriesAreFoundInTheCache) {
  ASSERT_TRUE(CreateDirectories(cache_.SnapshotPath(kCommit)).ok());
  ASSERT_TRUE(WriteFileAtomically(cache_.FilePath(kCommit, "config.json"), "{}").ok());
  ASSERT_TRUE(WriteFileAtomically(cache_.FilePath(kCommit, "model.safetensors"), "").ok());
  ASSERT_TRUE(cache_.WriteRef("main", kCommit).ok());
  EXPECT_EQ(*FindModelPath("org/name"), cache_.SnapshotPath(kCommit));
  EXPECT_EQ(*FindModelPath(absl::StrCat("org/name@", kCommit)), cache_.SnapshotPath(kCommit));
}

TEST_F(ModelPathTest, OthersAreExit66WithWhatToRun) {
  for (const char* argument : {"org/name", "org/name@v1"}) {
    const absl::Status status = FindModelPath(argument).status();
    EXPECT_EQ(ToExitCode(status), kExitMissingInput);
    EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("`pith pull ", argument, "`")));
    EXPECT_EQ(OpenModel(argument).status(), status);
  }
  EXPECT_EQ(ToExitCode(OpenModel("nowhere").status()), kExitMissingInput);
}

TEST_F(ModelPathTest, NamesAreThoseOfTheRepository) {
  EXPECT_EQ(ModelName("org/name@v1"), "org/name");
  EXPECT_EQ(ModelName("/models/smollm2.gguf"), "smollm2.gguf");
  EXPECT_EQ(ModelName("./a/b/"), "b");
  ASSERT_TRUE(CreateDirectories("org/name").ok());
  EXPECT_EQ(ModelName("org/name"), "name");
}

}  // namespace
}  // namespace pith
