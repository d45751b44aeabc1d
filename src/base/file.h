// Reading and writing files: read-only mappings, bounded reads, and writes that appear under their final name whole or not at all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace pith {

// Which content a file has, as far as the file system tells without reading it: whoever writes a file, or puts another in its place,
// changes one of these, short of setting the clock back or writing twice within a tick of the file system's clock.
struct FileIdentity {
  uint64_t inode = 0, size = 0;
  int64_t modified_ns = 0, changed_ns = 0;  // since the epoch

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// A whole regular file mapped read-only. Movable; the bytes stay valid as long as the object (or what it was moved to) lives.
// Thread-safe to read. A file truncated by someone else while mapped raises SIGBUS, as with every mmap:
// see InstallSignalHandlers (base/interrupt.h).
class MappedFile {
 public:
  // Errors: kNotFound (no such file), kDataLoss (a directory, FIFO or device), kResourceExhausted (no address space), kAborted (I/O).
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  absl::Span<const uint8_t> bytes() const { return {data_, size_}; }
  absl::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  // Of the file that is mapped, when it was opened, whatever `path` names by now.
  const FileIdentity& identity() const { return identity_; }

 private:
  std::string path_;
  FileIdentity identity_;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// A regular file open for reads at any offset: for content that is copied anyway, which read(2) does without a page fault per 4 KiB, and
// for files that others may truncate, which is an error here and SIGBUS in a mapping. Movable; reads are thread-safe.
class RandomAccessFile {
 public:
  // Errors: kNotFound, kDataLoss (no regular file), kAborted (I/O).
  static absl::StatusOr<RandomAccessFile> Open(const std::string& path);

  RandomAccessFile(RandomAccessFile&& other) noexcept;
  RandomAccessFile& operator=(RandomAccessFile&&) = delete;
  ~RandomAccessFile();

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }  // when it was opened

  // Fills `out` from byte `offset` on. Errors: kDataLoss when the file ends before, kAborted (I/O).
  absl::Status ReadAt(uint64_t offset, absl::Span<uint8_t> out) const;

 private:
  RandomAccessFile(std::string path, int fd, uint64_t size) : path_(std::move(path)), fd_(fd), size_(size) {}
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

// The content of a small file. Errors: kNotFound, kDataLoss if longer than max_bytes or no regular file, kAborted.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes = size_t{512} << 20);

bool FileExists(const std::string& path);
bool IsDirectory(const std::string& path);
absl::StatusOr<uint64_t> FileSize(const std::string& path);

// Names of the entries of a directory, sorted, without "." and "..". Errors: kNotFound, kAborted.
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);

// Writes a temporary sibling "path.partial-PID", and on Commit fsyncs it, renames it to `path` and fsyncs the directory.
// A symbolic link to a file stays a link: the file it names is replaced. Destroyed without Commit, it removes the temporary file; what a
// killed process left of the same `path`, the next Create removes. Not thread-safe.
class AtomicFileWriter {
 public:
  // Errors: kPermissionDenied when the file cannot be created, or `path` is something a rename would destroy: a directory, a FIFO, a
  // device, or a link to one of these or to nothing; or when another process with this one's number is writing it.
  static absl::StatusOr<AtomicFileWriter> Create(const std::string& path);
  AtomicFileWriter(AtomicFileWriter&& other) noexcept;
  AtomicFileWriter& operator=(AtomicFileWriter&&) = delete;
  ~AtomicFileWriter();

  // Errors: kAborted with the path and errno text (no space left, I/O error). After an error, only destruction is valid.
  absl::Status Append(absl::Span<const uint8_t> bytes);
  absl::Status Append(absl::string_view text);
  // Writes at a byte offset, in any order; Append goes on where the last Append ended. Bytes never written read as zero.
  absl::Status WriteAt(uint64_t offset, absl::Span<const uint8_t> bytes);
  absl::Status Commit();

 private:
  AtomicFileWriter() = default;
  std::string path_, partial_path_;
  int fd_ = -1;
};

// AtomicFileWriter in one call.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view content);

// A directory built under "path.partial-PID" beside `path` and renamed to it on Commit (every file fsynced by its writer, then
// the directory). Destroyed without Commit, it removes what was written; what a killed process left of the same `path`, the next Create
// removes. Errors of Create: kPermissionDenied if `path` exists already (unless it is an empty directory), its parent cannot be written,
// or another process with this one's number is writing it. Not thread-safe.
class AtomicDirectoryWriter {
 public:
  static absl::StatusOr<AtomicDirectoryWriter> Create(const std::string& path);
  AtomicDirectoryWriter(AtomicDirectoryWriter&& other) noexcept;
  AtomicDirectoryWriter& operator=(AtomicDirectoryWriter&&) = delete;
  ~AtomicDirectoryWriter();

  // Where to write files before Commit.
  const std::string& staging_path() const { return staging_path_; }
  absl::Status Commit();

 private:
  AtomicDirectoryWriter() = default;
  absl::Status CreateStaging();
  std::string path_, staging_path_;
  int lock_fd_ = -1;  // the staging directory, locked for as long as this process writes it
};

// Free bytes for an unprivileged writer on the file system of `path` (or of its nearest existing parent).
absl::StatusOr<uint64_t> FreeDiskBytes(const std::string& path);

// "a/b" + "c" = "a/b/c".
std::string JoinPath(absl::string_view directory, absl::string_view name);
// The last component; the part before it ("." when there is none).
std::string BaseName(absl::string_view path);
std::string DirName(absl::string_view path);

}  // namespace pith
