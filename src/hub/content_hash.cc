#include "hub/content_hash.h"

#include <openssl/evp.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace pith {

ContentHash::ContentHash(ContentId::Kind kind, int64_t size) : context_(EVP_MD_CTX_new()) {
  CHECK(context_ != nullptr);
  CHECK(EVP_DigestInit_ex(context_, kind == ContentId::Kind::kSha256 ? EVP_sha256() : EVP_sha1(), nullptr) == 1);
  if (kind == ContentId::Kind::kGitSha1) Update(absl::StrCat("blob ", size, absl::string_view("\0", 1)));
}

ContentHash::~ContentHash() { EVP_MD_CTX_free(context_); }

void ContentHash::Update(absl::string_view bytes) { CHECK(EVP_DigestUpdate(context_, bytes.data(), bytes.size()) == 1); }

std::string ContentHash::HexDigest() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  CHECK(EVP_DigestFinal_ex(context_, digest, &length) == 1);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), length));
}

}  // namespace pith
