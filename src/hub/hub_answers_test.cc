#include "hub/hub_answers.h"

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char kCommitHash[] = "607a30d783dfa663caf39e06633721c8d4cfcd7e";

// As the hub answers, with what is not needed beside it.
const char kTree[] = R"([
  {"type":"directory","oid":"3ee0ee4b9a6b5b3d9f1f3a4b5c6d7e8f90a1b2c3","size":0,"path":"onnx"},
  {"type":"file","oid":"bd9dbf5aae1a3862dd1526723246b20206e5fc37","size":704,"path":"config.json"},
  {"type":"file","oid":"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391","size":269060552,"path":"model.safetensors","xetHash":"00",
   "lfs":{"oid":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","size":269060552,"pointerSize":134}}
])";

TEST(HubAnswers, AddressesAreThoseOfTheApi) {
  const RepoId repo = *ParseRepoId("a/b@refs/pr/1");
  EXPECT_EQ(RevisionUrl("https://h", repo), "https://h/api/models/a/b/revision/refs%2Fpr%2F1");
  EXPECT_EQ(TreeUrl("https://h/x", repo, kCommitHash), std::string("https://h/x/api/models/a/b/tree/") + kCommitHash + "?recursive=true");
  EXPECT_EQ(FileUrl("https://h", repo, kCommitHash, "q 4/x#?%.gguf"),
            std::string("https://h/a/b/resolve/") + kCommitHash + "/q%204/x%23%3F%25.gguf");
}

TEST(HubAnswers, RevisionGivesTheCommit) {
  EXPECT_EQ(*ParseRevision(std::string(R"({"id":"a/b","gated":false,"sha":")") + kCommitHash + R"("})"), kCommitHash);
  for (const char* bad : {"", "[]", "{}", R"({"sha":null})", R"({"sha":"main"})", R"({"sha":"../../x"})", R"({"sha":7})"}) {
    EXPECT_EQ(ToExitCode(ParseRevision(bad).status()), kExitBadFile) << bad;
  }
  EXPECT_THAT(std::string(ParseRevision("<!DOCTYPE html><html>").status().message()), HasSubstr("an HTML page"));
}

TEST(HubAnswers, ListingGivesFilesWithWhatNamesTheirBlobs) {
  const std::vector<RepoFile> files = *ParseTreePage(kTree);
  EXPECT_THAT(files, ElementsAre(RepoFile{"config.json", 704, {ContentId::Kind::kGitSha1, "bd9dbf5aae1a3862dd1526723246b20206e5fc37"}},
                                 RepoFile{"model.safetensors",
                                          269060552,
                                          {ContentId::Kind::kSha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}}));
  EXPECT_TRUE(ParseTreePage("[]")->empty());
}

TEST(HubAnswers, ListingsThatCouldWriteElsewhereAreRefused) {
  const auto entry = [](const std::string& path, const std::string& oid, const std::string& more) {
    return R"([{"type":"file","size":1,"path":")" + path + R"(","oid":")" + oid + "\"" + more + "}]";
  };
  const std::string sha1 = "bd9dbf5aae1a3862dd1526723246b20206e5fc37";
  EXPECT_TRUE(ParseTreePage(entry("a/b", sha1, "")).ok());
  for (const std::string& bad :
       {entry("../x", sha1, ""), entry("/etc/passwd", sha1, ""), entry("a\\nb", sha1, ""), entry("", sha1, ""), entry("a", "../../x", ""),
        entry("a", sha1, R"(,"lfs":{"oid":"../x"})"), entry("a", sha1, R"(,"lfs":{})"), entry("a", sha1, R"(,"lfs":7)"),
        std::string(R"([{"type":"file","size":-1,"path":"a","oid":")") + sha1 + "\"}]",
        std::string(R"([{"type":"file","path":"a","oid":")") + sha1 + "\"}]", std::string("{}"), std::string("[7]")}) {
    EXPECT_EQ(ToExitCode(ParseTreePage(bad).status()), kExitBadFile) << bad;
  }
}

TEST(HubAnswers, TheNextPageIsInTheLinkHeader) {
  EXPECT_EQ(NextPageUrl("<https://h/p2?cursor=x>; rel=\"next\""), "https://h/p2?cursor=x");
  EXPECT_EQ(NextPageUrl("<https://h/1>; rel=\"first\", <https://h/2>; rel=\"next\""), "https://h/2");
  for (const char* none : {"", "<https://h/1>; rel=\"first\"", "<", "<x", "rel=\"next\"", "><", "<a>"})
    EXPECT_EQ(NextPageUrl(none), "") << none;
}

TEST(HubAnswers, AnIndexNamesItsShards) {
  EXPECT_THAT(*ParseIndexShards(
                  R"({"metadata":{"total_size":9},"weight_map":{"b":"m-2.safetensors","a":"m-1.safetensors","c":"m-2.safetensors"}})"),
              ElementsAre("m-1.safetensors", "m-2.safetensors"));
  for (const char* bad : {"{}", R"({"weight_map":{}})", R"({"weight_map":[]})", R"({"weight_map":{"a":7}})",
                          R"({"weight_map":{"a":"../x"}})", "version https://git-lfs.github.com/spec/v1"}) {
    EXPECT_EQ(ToExitCode(ParseIndexShards(bad).status()), kExitBadFile) << bad;
  }
}

}  // namespace
}  // namespace pith
