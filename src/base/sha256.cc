#include "base/sha256.h"

#include <openssl/evp.h>

#include "base/check.h"
#include "base/file.h"
#include "base/status.h"

namespace pith {

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  CHECK(context_ != nullptr);
  CHECK(EVP_DigestInit_ex(context_, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() { EVP_MD_CTX_free(context_); }

void Sha256::Update(absl::string_view bytes) { CHECK(EVP_DigestUpdate(context_, bytes.data(), bytes.size()) == 1); }

std::string Sha256::HexDigest() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  CHECK(EVP_DigestFinal_ex(context_, digest, &length) == 1);
  static constexpr char kHex[] = "0123456789abcdef";
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) {
    hex += kHex[digest[i] >> 4];
    hex += kHex[digest[i] & 15];
  }
  return hex;
}

std::string Sha256Hex(absl::string_view bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.HexDigest();
}

bool IsSha256(absl::string_view text) { return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == absl::string_view::npos; }

absl::StatusOr<std::string> Sha256OfFile(const std::string& path) {
  ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  return Sha256Hex(file.text());
}

}  // namespace pith
