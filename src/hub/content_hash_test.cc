#include "hub/content_hash.h"

#include "gtest/gtest.h"

namespace pith {
namespace {

std::string Hash(ContentId::Kind kind, absl::string_view content, size_t piece) {
  ContentHash hash(kind, static_cast<int64_t>(content.size()));
  for (size_t i = 0; i < content.size(); i += piece) hash.Update(content.substr(i, piece));
  return hash.HexDigest();
}

// The values of `git hash-object` and sha256sum.
TEST(ContentHash, AgreesWithGitAndSha256sum) {
  const absl::string_view text = "what is up, doc?";
  for (const size_t piece : {size_t{1}, size_t{5}, size_t{100}}) {
    EXPECT_EQ(Hash(ContentId::Kind::kGitSha1, text, piece), "bd9dbf5aae1a3862dd1526723246b20206e5fc37");
    EXPECT_EQ(Hash(ContentId::Kind::kSha256, "abc", piece), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  }
  EXPECT_EQ(Hash(ContentId::Kind::kGitSha1, "", 1), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
}

}  // namespace
}  // namespace pith
