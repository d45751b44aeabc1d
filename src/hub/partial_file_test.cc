#include "hub/partial_file.h"

#include <csignal>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/sha256.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

const std::string& Content() {
  static const std::string content = [] {
    std::string text;
    for (int i = 0; text.size() < 3'000'000; ++i) text += std::to_string(i);
    return text;
  }();
  return content;
}

ContentId Id() { return {ContentId::Kind::kSha256, Sha256Hex(Content())}; }

int64_t Size() { return static_cast<int64_t>(Content().size()); }

TEST(PartialFile, GoesOnWhereItStoppedAndBecomesTheBlob) {
  const ScratchDirectory scratch;
  const std::string blob = scratch.File("blob");
  const absl::string_view content = Content();
  std::string found;
  {
    const auto file = *PartialFile::Open(blob, Size(), Id());
    EXPECT_EQ(file->written(), 0);
    ASSERT_TRUE(file->Append(content.substr(0, 2'000'001)).ok());
  }
  EXPECT_FALSE(FileExists(blob));
  EXPECT_EQ(*ReadFile(blob + ".incomplete"), content.substr(0, 2'000'001));
  const auto file = *PartialFile::Open(blob, Size(), Id());
  EXPECT_EQ(file->written(), 2'000'001);
  EXPECT_EQ(file->beginning(), content.substr(0, 512));
  ASSERT_TRUE(file->Append(content.substr(2'000'001)).ok());
  EXPECT_TRUE(file->HashIsRight(&found));
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(*ReadFile(blob), content);
  EXPECT_FALSE(FileExists(blob + ".incomplete"));
}

TEST(PartialFile, AWrongPrefixShowsInTheHashAndCanBeForgotten) {
  const ScratchDirectory scratch;
  const std::string blob = scratch.File("blob");
  ASSERT_TRUE(WriteFileAtomically(blob + ".incomplete", "not the beginning").ok());
  const auto file = *PartialFile::Open(blob, Size(), Id());
  ASSERT_TRUE(file->Append(Content().substr(17)).ok());
  std::string found;
  EXPECT_FALSE(file->HashIsRight(&found));
  EXPECT_EQ(found.size(), 64);
  ASSERT_TRUE(file->Restart().ok());
  EXPECT_EQ(file->written(), 0);
  ASSERT_TRUE(file->Append(Content()).ok());
  EXPECT_TRUE(file->HashIsRight(&found));
  file->Discard();
  EXPECT_TRUE(ListDirectory(scratch.path())->empty());
}

TEST(PartialFile, MoreThanTheContentIsNoPrefixOfIt) {
  const ScratchDirectory scratch;
  const std::string blob = scratch.File("blob");
  ASSERT_TRUE(WriteFileAtomically(blob + ".incomplete", "too long").ok());
  EXPECT_EQ((*PartialFile::Open(blob, 7, Id()))->written(), 0);
  EXPECT_EQ(*FileSize(blob + ".incomplete"), 0);
}

TEST(PartialFile, ErrorsHaveTheirExitCodes) {
  const ScratchDirectory scratch;
  EXPECT_EQ(ToExitCode(PartialFile::Open(scratch.File("none/blob"), 7, Id()).status()), kExitCannotCreate);
  ASSERT_TRUE(WriteFileAtomically(scratch.File("blob.incomplete"), "x").ok());
  SetInterruptSignal(SIGINT);
  EXPECT_EQ(PartialFile::Open(scratch.File("blob"), 7, Id()).status().code(), absl::StatusCode::kCancelled);
  SetInterruptSignal(0);
  std::filesystem::create_symlink("elsewhere", scratch.File("link.incomplete"));
  EXPECT_EQ(ToExitCode(PartialFile::Open(scratch.File("link"), 7, Id()).status()), kExitCannotCreate);
}

}  // namespace
}  // namespace pith
