#include "base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "base/status.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void WriteOrDie(const std::string& path, absl::string_view content) { ASSERT_TRUE(WriteFileAtomically(path, content).ok()); }

TEST(MappedFile, BytesOfARegularFile) {
  const ScratchDirectory scratch;
  WriteOrDie(scratch.File("a"), "hello");
  const auto file = MappedFile::Open(scratch.File("a"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->text(), "hello");
  EXPECT_EQ(file->bytes().size(), 5u);
  EXPECT_EQ(file->path(), scratch.File("a"));
}

TEST(MappedFile, EmptyFileHasNoBytes) {
  const ScratchDirectory scratch;
  WriteOrDie(scratch.File("a"), "");
  EXPECT_TRUE(MappedFile::Open(scratch.File("a"))->bytes().empty());
}

TEST(MappedFile, MovesKeepTheBytesInPlaceAndEmptyTheSource) {
  const ScratchDirectory scratch;
  WriteOrDie(scratch.File("a"), "first");
  WriteOrDie(scratch.File("b"), "second");
  MappedFile a = *MappedFile::Open(scratch.File("a"));
  const uint8_t* bytes = a.bytes().data();
  MappedFile b(std::move(a));
  EXPECT_EQ(b.bytes().data(), bytes);
  EXPECT_TRUE(a.bytes().empty());
  MappedFile c = *MappedFile::Open(scratch.File("b"));
  c = std::move(b);
  EXPECT_EQ(c.text(), "first");
  EXPECT_EQ(c.bytes().data(), bytes);
  EXPECT_TRUE(b.bytes().empty());
  MappedFile& self = c;
  c = std::move(self);
  EXPECT_EQ(c.text(), "first");
}

TEST(MappedFile, StaysReadableWhenTheNameIsGone) {
  const ScratchDirectory scratch;
  WriteOrDie(scratch.File("a"), "hello");
  const auto file = MappedFile::Open(scratch.File("a"));
  unlink(scratch.File("a").c_str());
  EXPECT_EQ(file->text(), "hello");
}

TEST(Reading, WhatIsNoRegularFileIsRefusedAtOnce) {
  const ScratchDirectory scratch;
  ASSERT_EQ(mkfifo(scratch.File("fifo").c_str(), 0600), 0);
  for (const std::string& path : {scratch.File("fifo"), scratch.path(), std::string("/dev/null")}) {
    EXPECT_EQ(MappedFile::Open(path).status().code(), absl::StatusCode::kDataLoss) << path;
    EXPECT_EQ(ReadFile(path).status().code(), absl::StatusCode::kDataLoss) << path;
  }
  for (const std::string& path : {scratch.File("none"), scratch.File("fifo") + "/below", std::string()}) {
    EXPECT_EQ(MappedFile::Open(path).status().code(), absl::StatusCode::kNotFound) << path;
    EXPECT_EQ(ReadFile(path).status().code(), absl::StatusCode::kNotFound) << path;
    EXPECT_EQ(FileSize(path).status().code(), absl::StatusCode::kNotFound) << path;
    EXPECT_FALSE(FileExists(path));
  }
  EXPECT_EQ(MappedFile::Open(scratch.File("x\x1B[2J")).status().message().find('\x1B'), absl::string_view::npos);
}

TEST(ReadFile, BoundsTheSize) {
  const ScratchDirectory scratch;
  WriteOrDie(scratch.File("a"), "12345");
  EXPECT_EQ(*ReadFile(scratch.File("a"), 5), "12345");
  EXPECT_THAT(std::string(ReadFile(scratch.File("a"), 4).status().message()), testing::AllOf(HasSubstr("at most 4"), HasSubstr("found 5")));
  EXPECT_EQ(*FileSize(scratch.File("a")), 5u);
}

TEST(ListDirectory, SortedNames) {
  const ScratchDirectory scratch;
  for (const char* name : {"b", ".hidden", "a"}) WriteOrDie(scratch.File(name), "");
  EXPECT_THAT(*ListDirectory(scratch.path()), ElementsAre(".hidden", "a", "b"));
  EXPECT_EQ(ListDirectory(scratch.File("none")).status().code(), absl::StatusCode::kNotFound);
}

TEST(AtomicFileWriter, NothingUnderTheNameBeforeCommitAllOfItAfter) {
  const ScratchDirectory scratch;
  WriteOrDie(scratch.File("a"), "old");
  auto writer = AtomicFileWriter::Create(scratch.File("a"));
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->Append("new ").ok());
  ASSERT_TRUE(writer->Append("text").ok());
  EXPECT_EQ(*ReadFile(scratch.File("a")), "old");
  ASSERT_TRUE(writer->Commit().ok());
  EXPECT_EQ(*ReadFile(scratch.File("a")), "new text");
  EXPECT_THAT(*ListDirectory(scratch.path()), ElementsAre("a"));
}

TEST(AtomicFileWriter, WriteAtFillsHolesWithZeros) {
  const ScratchDirectory scratch;
  auto writer = AtomicFileWriter::Create(scratch.File("a"));
  const std::vector<uint8_t> tail = {'t'}, middle = {'m', 'n'};
  ASSERT_TRUE(writer->WriteAt(7, tail).ok());
  ASSERT_TRUE(writer->Append("ab").ok());
  ASSERT_TRUE(writer->WriteAt(3, middle).ok());
  ASSERT_TRUE(writer->Append("c").ok());
  ASSERT_TRUE(writer->Commit().ok());
  EXPECT_EQ(*ReadFile(scratch.File("a")), std::string("abcmn\0\0t", 8));
}

TEST(AtomicFileWriter, DestroyedWithoutCommitLeavesNothing) {
  const ScratchDirectory scratch;
  {
    auto writer = AtomicFileWriter::Create(scratch.File("a"));
    ASSERT_TRUE(writer->Append("text").ok());
    AtomicFileWriter moved = *std::move(writer);
  }
  EXPECT_THAT(*ListDirectory(scratch.path()), IsEmpty());
}

TEST(AtomicFileWriter, AProcessKilledBeforeCommitLeavesTheOldFile) {
  const ScratchDirectory scratch;
  WriteOrDie(scratch.File("a"), "old");
  const pid_t child = fork();
  if (child == 0) {
    auto writer = AtomicFileWriter::Create(scratch.File("a"));
    if (!writer.ok() || !writer->Append("half").ok()) _exit(1);
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(*ReadFile(scratch.File("a")), "old");
}

TEST(AtomicFileWriter, RefusesTargetsThatARenameWouldDestroy) {
  const ScratchDirectory scratch;
  ASSERT_EQ(mkfifo(scratch.File("fifo").c_str(), 0600), 0);
  ASSERT_EQ(mkdir(scratch.File("dir").c_str(), 0700), 0);
  std::filesystem::create_symlink("nowhere", scratch.File("dangling"));
  std::filesystem::create_symlink("fifo", scratch.File("to_fifo"));
  for (const std::string& path : {scratch.File("fifo"), scratch.File("dir"), scratch.File("dangling"), scratch.File("to_fifo"),
                                  scratch.File("no/such/dir"), std::string("/dev/null"), std::string()}) {
    EXPECT_EQ(AtomicFileWriter::Create(path).status().code(), absl::StatusCode::kPermissionDenied) << path;
  }
  EXPECT_THAT(*ListDirectory(scratch.path()), ElementsAre("dangling", "dir", "fifo", "to_fifo"));
}

TEST(AtomicFileWriter, ASymlinkKeepsPointingAtTheFileThatIsReplaced) {
  const ScratchDirectory scratch;
  ASSERT_EQ(mkdir(scratch.File("dir").c_str(), 0700), 0);
  WriteOrDie(scratch.File("dir/real"), "old");
  std::filesystem::create_symlink("dir/real", scratch.File("link"));
  WriteOrDie(scratch.File("link"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(scratch.File("link")));
  EXPECT_EQ(*ReadFile(scratch.File("dir/real")), "new");
  EXPECT_THAT(*ListDirectory(scratch.File("dir")), ElementsAre("real"));
}

TEST(AtomicFileWriter, AFullDiskIsAnIoErrorAndLeavesNothing) {
  const ScratchDirectory scratch;
  if (mount("tmpfs", scratch.path().c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "needs the right to mount a tmpfs";
  {
    auto writer = AtomicFileWriter::Create(scratch.File("a"));
    ASSERT_TRUE(writer.ok());
    const absl::Status status = writer->Append(std::string(1 << 20, 'x'));
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
    EXPECT_THAT(std::string(status.message()), testing::AllOf(HasSubstr(scratch.File("a")), HasSubstr("No space left")));
    EXPECT_LT(*FreeDiskBytes(scratch.File("a")), 64u << 10);
  }
  EXPECT_THAT(*ListDirectory(scratch.path()), IsEmpty());
  ASSERT_EQ(umount2(scratch.path().c_str(), MNT_DETACH), 0);
}

TEST(AtomicFileWriter, AFileSizeLimitIsAnIoError) {
  const ScratchDirectory scratch;
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const absl::Status status = WriteFileAtomically(scratch.File("a"), std::string(2000, 'x'));
    _exit(status.code() == absl::StatusCode::kAborted ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_THAT(*ListDirectory(scratch.path()), IsEmpty());
}

TEST(AtomicDirectoryWriter, AppearsWholeOrNotAtAll) {
  const ScratchDirectory scratch;
  {
    auto writer = AtomicDirectoryWriter::Create(scratch.File("out/"));
    ASSERT_TRUE(writer.ok());
    WriteOrDie(JoinPath(writer->staging_path(), "a"), "text");
    EXPECT_FALSE(FileExists(scratch.File("out")));
    ASSERT_TRUE(writer->Commit().ok());
  }
  EXPECT_EQ(*ReadFile(scratch.File("out/a")), "text");
  EXPECT_THAT(*ListDirectory(scratch.path()), ElementsAre("out"));
  {
    auto writer = AtomicDirectoryWriter::Create(scratch.File("other"));
    WriteOrDie(JoinPath(writer->staging_path(), "a"), "text");
  }
  EXPECT_THAT(*ListDirectory(scratch.path()), ElementsAre("out"));
}

TEST(AtomicDirectoryWriter, TakesTheOnlyPlaceOfAnEmptyDirectory) {
  const ScratchDirectory scratch;
  ASSERT_EQ(mkdir(scratch.File("empty").c_str(), 0700), 0);
  ASSERT_EQ(mkdir(scratch.File("full").c_str(), 0700), 0);
  WriteOrDie(scratch.File("full/a"), "precious");
  WriteOrDie(scratch.File("file"), "precious");
  auto writer = AtomicDirectoryWriter::Create(scratch.File("empty"));
  ASSERT_TRUE(writer.ok());
  WriteOrDie(JoinPath(writer->staging_path(), "b"), "");
  ASSERT_TRUE(writer->Commit().ok());
  EXPECT_THAT(*ListDirectory(scratch.File("empty")), ElementsAre("b"));
  for (const char* name : {"full", "file", "file/below", "none/below"}) {
    EXPECT_EQ(AtomicDirectoryWriter::Create(scratch.File(name)).status().code(), absl::StatusCode::kPermissionDenied) << name;
  }
  EXPECT_EQ(*ReadFile(scratch.File("full/a")), "precious");
}

// The number of a process that has ended.
pid_t EndedProcess() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  return child;
}

TEST(AtomicWriters, RemoveWhatKilledProcessesLeftOfTheSamePath) {
  const ScratchDirectory scratch;
  const pid_t ended = EndedProcess();
  const std::string stale = absl::StrCat(scratch.File("out.partial-"), ended), other = absl::StrCat(scratch.File("other.partial-"), ended);
  const std::string live = absl::StrCat(scratch.File("out.partial-"), getppid()), odd = scratch.File("out.partial-x");
  for (const std::string& directory : {stale, other, live, odd}) ASSERT_EQ(mkdir(directory.c_str(), 0700), 0);
  WriteOrDie(JoinPath(stale, "a"), "text");
  ASSERT_TRUE(AtomicDirectoryWriter::Create(scratch.File("out")).ok());
  EXPECT_FALSE(FileExists(stale));
  for (const std::string& directory : {other, live, odd}) EXPECT_TRUE(FileExists(directory)) << directory;

  WriteOrDie(absl::StrCat(scratch.File("file.partial-"), ended), "text");
  WriteOrDie(scratch.File("file"), "text");
  EXPECT_FALSE(FileExists(absl::StrCat(scratch.File("file.partial-"), ended)));
}

TEST(AtomicWriters, KeepWhatALockSaysIsBeingWritten) {
  const ScratchDirectory scratch;
  const std::string partial = absl::StrCat(scratch.File("out.partial-"), EndedProcess());  // of another container, say
  ASSERT_EQ(mkdir(partial.c_str(), 0700), 0);
  const int fd = open(partial.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  ASSERT_TRUE(AtomicDirectoryWriter::Create(scratch.File("out")).ok());
  EXPECT_TRUE(FileExists(partial));
  close(fd);
}

TEST(AtomicWriters, TwoOfTheSameProcessNumberDoNotDestroyEachOther) {
  const ScratchDirectory scratch;
  const auto first = AtomicDirectoryWriter::Create(scratch.File("out"));
  ASSERT_TRUE(first.ok());
  WriteOrDie(JoinPath(first->staging_path(), "a"), "text");
  EXPECT_EQ(AtomicDirectoryWriter::Create(scratch.File("out")).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(FileExists(JoinPath(first->staging_path(), "a")));
  auto file = AtomicFileWriter::Create(scratch.File("file"));
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->Append("text").ok());
  EXPECT_EQ(AtomicFileWriter::Create(scratch.File("file")).status().code(), absl::StatusCode::kPermissionDenied);
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_EQ(*ReadFile(scratch.File("file")), "text");
}

TEST(AtomicDirectoryWriter, ClearsWhatAnEarlierProcessOfItsNumberLeft) {
  const ScratchDirectory scratch;
  const std::string partial = absl::StrCat(scratch.File("out.partial-"), getpid());
  ASSERT_EQ(mkdir(partial.c_str(), 0700), 0);
  WriteOrDie(JoinPath(partial, "old"), "text");
  auto writer = AtomicDirectoryWriter::Create(scratch.File("out"));
  ASSERT_TRUE(writer.ok());
  WriteOrDie(JoinPath(writer->staging_path(), "new"), "text");
  ASSERT_TRUE(writer->Commit().ok());
  EXPECT_THAT(*ListDirectory(scratch.File("out")), ElementsAre("new"));
}

TEST(AtomicDirectoryWriter, ADirectoryFilledMeanwhileIsNotReplaced) {
  const ScratchDirectory scratch;
  {
    auto writer = AtomicDirectoryWriter::Create(scratch.File("out"));
    ASSERT_TRUE(writer.ok());
    ASSERT_EQ(mkdir(scratch.File("out").c_str(), 0700), 0);
    WriteOrDie(scratch.File("out/a"), "precious");
    EXPECT_EQ(writer->Commit().code(), absl::StatusCode::kPermissionDenied);
  }
  EXPECT_EQ(*ReadFile(scratch.File("out/a")), "precious");
  EXPECT_THAT(*ListDirectory(scratch.path()), ElementsAre("out"));
}

TEST(MappedFile, IdentityIsThatOfTheContent) {
  const ScratchDirectory scratch;
  WriteOrDie(scratch.File("a"), "hello");
  const MappedFile file = *MappedFile::Open(scratch.File("a"));
  EXPECT_EQ(file.identity().size, 5u);
  EXPECT_EQ(MappedFile::Open(scratch.File("a"))->identity(), file.identity());
  const FileIdentity before = file.identity();
  WriteOrDie(scratch.File("a"), "world");  // another file of the same size in its place
  EXPECT_EQ(file.identity(), before);
  const FileIdentity after = MappedFile::Open(scratch.File("a"))->identity();
  EXPECT_NE(after.inode, before.inode);
  EXPECT_NE(after, before);
  const timespec times[2] = {{.tv_sec = 1, .tv_nsec = 5}, {.tv_sec = 2, .tv_nsec = 7}};
  ASSERT_EQ(utimensat(AT_FDCWD, scratch.File("a").c_str(), times, 0), 0);
  const FileIdentity touched = MappedFile::Open(scratch.File("a"))->identity();
  EXPECT_EQ(touched.modified_ns, 2'000'000'007);
  EXPECT_GE(touched.changed_ns, after.changed_ns);  // what a tool that sets times back cannot hide
}

TEST(RandomAccessFile, ReadsAnywhereAndNamesTheEnd) {
  const ScratchDirectory scratch;
  WriteOrDie(scratch.File("a"), "0123456789");
  auto opened = RandomAccessFile::Open(scratch.File("a"));
  ASSERT_TRUE(opened.ok());
  const RandomAccessFile file = *std::move(opened);
  EXPECT_EQ(file.size(), 10u);
  std::vector<uint8_t> bytes(4);
  ASSERT_TRUE(file.ReadAt(3, absl::MakeSpan(bytes)).ok());
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "3456");
  EXPECT_TRUE(file.ReadAt(10, {}).ok());
  const absl::Status past = file.ReadAt(8, absl::MakeSpan(bytes));
  EXPECT_EQ(past.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(past.message()), HasSubstr("expected 2 more bytes at offset 10, found the end"));
  WriteOrDie(scratch.File("a"), "replaced");  // the open file stays what it was
  EXPECT_TRUE(file.ReadAt(0, absl::MakeSpan(bytes)).ok());
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "0123");
}

TEST(RandomAccessFile, OnlyRegularFiles) {
  const ScratchDirectory scratch;
  EXPECT_EQ(RandomAccessFile::Open(scratch.File("none")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(RandomAccessFile::Open(scratch.path()).status().code(), absl::StatusCode::kDataLoss);
  ASSERT_EQ(mkfifo(scratch.File("fifo").c_str(), 0600), 0);
  EXPECT_EQ(RandomAccessFile::Open(scratch.File("fifo")).status().code(), absl::StatusCode::kDataLoss);
}

TEST(RandomAccessFile, ATruncatedFileIsAnErrorAndNoSignal) {
  const ScratchDirectory scratch;
  WriteOrDie(scratch.File("a"), std::string(100, 'x'));
  const RandomAccessFile file = *RandomAccessFile::Open(scratch.File("a"));
  ASSERT_EQ(truncate(scratch.File("a").c_str(), 50), 0);
  std::vector<uint8_t> bytes(100);
  EXPECT_EQ(file.ReadAt(0, absl::MakeSpan(bytes)).code(), absl::StatusCode::kDataLoss);
}

TEST(FreeDiskBytes, OfTheNearestExistingParent) {
  const ScratchDirectory scratch;
  EXPECT_GT(*FreeDiskBytes(scratch.path()), 0u);
  EXPECT_TRUE(FreeDiskBytes(scratch.File("not/there/yet")).ok());
  EXPECT_TRUE(FreeDiskBytes("relative/not/there").ok());
  EXPECT_TRUE(FreeDiskBytes("").ok());
}

TEST(Paths, JoinBaseAndDirectory) {
  EXPECT_EQ(JoinPath("a/b", "c"), "a/b/c");
  EXPECT_EQ(JoinPath("a/b/", "c"), "a/b/c");
  EXPECT_EQ(JoinPath("", "c"), "c");
  EXPECT_EQ(BaseName("a/b/c"), "c");
  EXPECT_EQ(BaseName("a/b/"), "b");
  EXPECT_EQ(BaseName("c"), "c");
  EXPECT_EQ(BaseName("/"), "/");
  EXPECT_EQ(DirName("a/b/c"), "a/b");
  EXPECT_EQ(DirName("a/b/"), "a");
  EXPECT_EQ(DirName("c"), ".");
  EXPECT_EQ(DirName("/c"), "/");
  EXPECT_EQ(DirName("/"), "/");
}

}  // namespace
}  // namespace pith
