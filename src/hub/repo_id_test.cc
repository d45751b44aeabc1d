#include "hub/repo_id.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

TEST(RepoId, TakesOwnerNameAndRevision) {
  const RepoId plain = *ParseRepoId("HuggingFaceTB/SmolLM2-135M_x.1");
  EXPECT_EQ(plain, (RepoId{.owner = "HuggingFaceTB", .name = "SmolLM2-135M_x.1", .revision = "main"}));
  EXPECT_EQ(plain.FullName(), "HuggingFaceTB/SmolLM2-135M_x.1");
  EXPECT_EQ(plain.Text(), plain.FullName());
  const RepoId pinned = *ParseRepoId("a/b@refs/pr/12");
  EXPECT_EQ(pinned.revision, "refs/pr/12");
  EXPECT_EQ(pinned.Text(), "a/b@refs/pr/12");
  for (const char* good : {"_a/b_", "a/b@v1.0", "a/b@607a30d783dfa663caf39e06633721c8d4cfcd7e", "a/b@607a30d", "0/1"}) {
    EXPECT_TRUE(ParseRepoId(good).ok()) << good;
    EXPECT_EQ(ParseRepoId(good)->Text(), good);
  }
  EXPECT_EQ(ParseRepoId("a/b@main")->Text(), "a/b");
}

TEST(RepoId, RefusesNamesTheHubCannotHave) {
  const std::string too_long(97, 'x'), long_name = absl::StrCat("a/", too_long), long_owner = absl::StrCat(too_long, "/b");
  const absl::string_view bad_names[] = {"",
                                         "name",
                                         "/",
                                         "a/",
                                         "/b",
                                         "a/b/c",
                                         "../b",
                                         "a/..",
                                         "a/.b",
                                         "a/b.",
                                         "-a/b",
                                         "a/b-",
                                         "a--b/c",
                                         "a/b..c",
                                         "a/b.git",
                                         "a b/c",
                                         "a/b\n",
                                         "a/b:Q4",
                                         "a/\xC3\xA9",
                                         long_name,
                                         long_owner,
                                         "https://huggingface.co/a/b",
                                         absl::string_view("a/b\0c", 5)};
  for (const absl::string_view bad : bad_names) {
    const auto parsed = ParseRepoId(bad);
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_EQ(ToExitCode(parsed.status()), kExitUsage);
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("expected"));
  }
}

TEST(RepoId, RefusesRevisionsThatLeaveTheRefsFolder) {
  const std::string long_revision = absl::StrCat("a/b@", std::string(201, 'x'));
  for (const absl::string_view bad :
       std::vector<absl::string_view>{"a/b@", "a/b@..", "a/b@../x", "a/b@x/../y", "a/b@/x", "a/b@x/", "a/b@x//y", "a/b@.x", "a/b@-x",
                                      "a/b@x y", "a/b@x\\y", "a/b@x@y", "a/b@x.lock", "a/b@x\ny", long_revision}) {
    EXPECT_EQ(ParseRepoId(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(RepoId, KnowsHashes) {
  EXPECT_TRUE(IsCommitHash("607a30d783dfa663caf39e06633721c8d4cfcd7e"));
  EXPECT_FALSE(IsCommitHash("607A30d783dfa663caf39e06633721c8d4cfcd7e"));
  EXPECT_FALSE(IsCommitHash("607a30d"));
}

TEST(RepoId, FileNamesStayInTheRepository) {
  for (const char* good : {"config.json", "BF16/model-00001-of-00002.gguf", ".gitattributes", "a b", "..x", "\xC3\xA9.json"}) {
    EXPECT_TRUE(IsSafeFileName(good)) << good;
  }
  const std::string long_part(256, 'x');
  const absl::string_view bad_names[] = {
      "", "/etc/passwd", "../x", "a/../b", ".", "a//b", "a/", "a\\b", "a\nb", long_part, absl::string_view("a\0b", 3)};
  for (const absl::string_view bad : bad_names) {
    EXPECT_FALSE(IsSafeFileName(bad)) << bad;
  }
}

}  // namespace
}  // namespace pith
