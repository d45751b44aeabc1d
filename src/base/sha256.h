// SHA-256 through OpenSSL, for manifests and fingerprints.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct evp_md_ctx_st;

namespace pith {

// Incremental; not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void Update(absl::string_view bytes);
  std::string HexDigest();  // 64 lower-case hex digits; call once, last

 private:
  evp_md_ctx_st* context_;
};

std::string Sha256Hex(absl::string_view bytes);
// Whether `text` is written as HexDigest writes a hash.
bool IsSha256(absl::string_view text);
// Hash of a whole file, streamed. Errors as MappedFile::Open.
absl::StatusOr<std::string> Sha256OfFile(const std::string& path);

}  // namespace pith
