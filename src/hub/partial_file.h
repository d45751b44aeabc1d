// A blob that is being downloaded: NAME.incomplete beside it, which always holds a prefix of the content, so its size says where to go on
// (the form that huggingface_hub and others resume as well). It becomes the blob when it is whole and its hash is right, never before.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "hub/content_hash.h"

namespace pith {

// Not thread-safe. Destroyed before Commit, it leaves the file for a later run.
class PartialFile {
 public:
  // Opens or creates `blob_path`.incomplete of a content of `size` bytes. What is there is read once to hash it; more than `size` bytes of
  // it are cut off altogether. Errors: kPermissionDenied, kAborted, kCancelled (Ctrl-C while it is hashed).
  static absl::StatusOr<std::unique_ptr<PartialFile>> Open(const std::string& blob_path, int64_t size, const ContentId& id);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  int64_t size() const { return size_; }                       // of the whole content, in bytes
  int64_t written() const { return written_; }                 // the bytes held
  const std::string& beginning() const { return beginning_; }  // the first 512 of them at most

  // Adds bytes at the end. Precondition: no more than size() in all. Errors: kAborted (disk full, I/O).
  absl::Status Append(absl::string_view bytes);
  // Forgets all bytes.
  absl::Status Restart();
  // Whether the hash of all bytes is that of the id; once, when written() == size(). The hash that was found goes to `found`.
  bool HashIsRight(std::string* found);
  // Syncs it and gives it the name of the blob. Errors: kAborted, kPermissionDenied.
  absl::Status Commit();
  // Removes it.
  void Discard();

 private:
  PartialFile(std::string blob_path, int fd, int64_t size, const ContentId& id);
  absl::Status HashPrefix();
  void Hash(absl::string_view bytes);

  const std::string blob_path_, path_;
  const int64_t size_;
  const ContentId id_;
  int fd_ = -1;
  int64_t written_ = 0;
  std::string beginning_;
  std::unique_ptr<ContentHash> hash_;
};

}  // namespace pith
