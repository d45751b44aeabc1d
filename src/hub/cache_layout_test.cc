#include "hub/cache_layout.h"

#include <filesystem>

#include "base/file.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const char kCommit[] = "607a30d783dfa663caf39e06633721c8d4cfcd7e";
const char kHash[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

class CacheLayout : public testing::Test {
 protected:
  CacheLayout() : cache_(scratch_.path(), *ParseRepoId("julien-c/EsperBERTo-small")) {}
  ScratchDirectory scratch_;
  RepoCache cache_;
};

// The names that huggingface_hub gives.
TEST_F(CacheLayout, PathsAreThoseOfTheHubsOwnClient) {
  const std::string root = scratch_.File("models--julien-c--EsperBERTo-small");
  EXPECT_EQ(cache_.root(), root);
  EXPECT_EQ(cache_.BlobPath(kHash), root + "/blobs/" + kHash);
  EXPECT_EQ(cache_.FilePath(kCommit, "a/b.json"), root + "/snapshots/" + kCommit + "/a/b.json");
  EXPECT_EQ(cache_.RefPath("refs/pr/1"), root + "/refs/refs/pr/1");
  EXPECT_EQ(cache_.AbsentPath(kCommit, "x.json"), root + "/.no_exist/" + kCommit + "/x.json");
  EXPECT_EQ(cache_.LockPath(kHash), scratch_.File(std::string(".locks/models--julien-c--EsperBERTo-small/") + kHash + ".lock"));
}

TEST_F(CacheLayout, FoldersComeWithATagForBackupPrograms) {
  ASSERT_TRUE(cache_.CreateFolders().ok());
  EXPECT_THAT(*ListDirectory(scratch_.path()), ElementsAre(".locks", "CACHEDIR.TAG", "models--julien-c--EsperBERTo-small"));
  EXPECT_THAT(*ListDirectory(cache_.root()), ElementsAre("blobs", "refs", "snapshots"));
  EXPECT_THAT(*ReadFile(scratch_.File("CACHEDIR.TAG")), StartsWith("Signature: 8a477f597d28d172789f06886806bc55\n"));
  ASSERT_TRUE(WriteFileAtomically(scratch_.File("CACHEDIR.TAG"), "mine").ok());
  ASSERT_TRUE(cache_.CreateFolders().ok());
  EXPECT_EQ(*ReadFile(scratch_.File("CACHEDIR.TAG")), "mine");
}

TEST_F(CacheLayout, LinksAreRelativeAndReplacedInOneStep) {
  ASSERT_TRUE(cache_.CreateFolders().ok());
  ASSERT_TRUE(WriteFileAtomically(cache_.BlobPath(kHash), "abc").ok());
  ASSERT_TRUE(cache_.LinkFile(kCommit, "config.json", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391").ok());
  EXPECT_FALSE(cache_.HasFile(kCommit, "config.json", 3));
  ASSERT_TRUE(cache_.LinkFile(kCommit, "config.json", kHash).ok());
  ASSERT_TRUE(cache_.LinkFile(kCommit, "BF16/x/model.gguf", kHash).ok());
  EXPECT_EQ(std::filesystem::read_symlink(cache_.FilePath(kCommit, "config.json")), std::string("../../blobs/") + kHash);
  EXPECT_EQ(std::filesystem::read_symlink(cache_.FilePath(kCommit, "BF16/x/model.gguf")), std::string("../../../../blobs/") + kHash);
  EXPECT_EQ(*ReadFile(cache_.FilePath(kCommit, "BF16/x/model.gguf")), "abc");
  EXPECT_TRUE(cache_.HasFile(kCommit, "config.json", 3));
  EXPECT_FALSE(cache_.HasFile(kCommit, "config.json", 4));
  EXPECT_TRUE(cache_.HasBlob(kHash, 3));
  EXPECT_FALSE(cache_.HasBlob(kHash, 2));
  EXPECT_THAT(*ListDirectory(cache_.SnapshotPath(kCommit)), ElementsAre("BF16", "config.json"));
}

TEST_F(CacheLayout, AFileThatIsNoLinkIsLeftAlone) {
  ASSERT_TRUE(CreateDirectories(cache_.SnapshotPath(kCommit)).ok());
  ASSERT_TRUE(WriteFileAtomically(cache_.FilePath(kCommit, "config.json"), "theirs").ok());
  EXPECT_TRUE(cache_.HasFile(kCommit, "config.json", 6));
  const absl::Status linked = cache_.LinkFile(kCommit, "config.json", kHash);
  EXPECT_EQ(ToExitCode(linked), kExitCannotCreate);
  EXPECT_THAT(std::string(linked.message()), HasSubstr("found another file"));
  EXPECT_EQ(*ReadFile(cache_.FilePath(kCommit, "config.json")), "theirs");
}

TEST_F(CacheLayout, RefsHoldTheCommitAlone) {
  EXPECT_EQ(cache_.CachedCommit("main"), std::nullopt);
  EXPECT_EQ(cache_.CachedCommit(kCommit), kCommit);
  ASSERT_TRUE(cache_.WriteRef("main", kCommit).ok());
  ASSERT_TRUE(cache_.WriteRef("refs/pr/1", kCommit).ok());
  ASSERT_TRUE(cache_.WriteRef(kCommit, kCommit).ok());
  EXPECT_EQ(*ReadFile(cache_.RefPath("main")), kCommit);
  EXPECT_EQ(cache_.CachedCommit("refs/pr/1"), kCommit);
  EXPECT_THAT(*ListDirectory(cache_.root() + "/refs"), ElementsAre("main", "refs"));
  ASSERT_TRUE(WriteFileAtomically(cache_.RefPath("broken"), "../../etc").ok());
  EXPECT_EQ(cache_.CachedCommit("broken"), std::nullopt);
}

TEST_F(CacheLayout, AbsentFilesAreMarkedByEmptyOnes) {
  ASSERT_TRUE(cache_.MarkAbsent(kCommit, "added_tokens.json").ok());
  ASSERT_TRUE(cache_.MarkAbsent(kCommit, "added_tokens.json").ok());
  EXPECT_EQ(*FileSize(cache_.AbsentPath(kCommit, "added_tokens.json")), 0);
}

TEST_F(CacheLayout, ACacheThatCannotBeMadeIsExit73) {
  ASSERT_TRUE(WriteFileAtomically(scratch_.File("file"), "").ok());
  const RepoCache cache(scratch_.File("file"), *ParseRepoId("a/b"));
  EXPECT_EQ(ToExitCode(cache.CreateFolders()), kExitCannotCreate);
}

}  // namespace
}  // namespace pith
