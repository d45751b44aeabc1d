// What names a file of a repository, and with it its blob in the cache: the SHA-256 of a file stored by Git LFS, the git SHA-1 of any other
// (SHA-1 over "blob SIZE\0" and the content, https://git-scm.com/book/en/v2/Git-Internals-Git-Objects).
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

struct evp_md_ctx_st;

namespace pith {

struct ContentId {
  enum class Kind { kSha256, kGitSha1 };
  Kind kind = Kind::kSha256;
  std::string hex;  // 64 or 40 lower-case digits; the name of the blob

  const char* kind_name() const { return kind == Kind::kSha256 ? "SHA-256" : "git SHA-1"; }
  friend bool operator==(const ContentId&, const ContentId&) = default;
};

// Incremental; not thread-safe.
class ContentHash {
 public:
  // size: bytes of the whole content, which git hashes first.
  ContentHash(ContentId::Kind kind, int64_t size);
  ~ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;
  void Update(absl::string_view bytes);
  std::string HexDigest();  // call once, last

 private:
  evp_md_ctx_st* context_;
};

}  // namespace pith
