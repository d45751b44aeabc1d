#include "base/checksum.h"

#include <openssl/evp.h>

#include <memory>

#include "base/check.h"

namespace pith {
namespace {

struct FreeMac {
  void operator()(EVP_MAC* mac) const { EVP_MAC_free(mac); }
};
struct FreeContext {
  void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};

std::unique_ptr<EVP_MAC, FreeMac> FetchPoly1305() { return std::unique_ptr<EVP_MAC, FreeMac>(EVP_MAC_fetch(nullptr, "POLY1305", nullptr)); }

}  // namespace

bool HasChecksum() { return FetchPoly1305() != nullptr; }

Checksum ComputeChecksum(absl::Span<const uint8_t> bytes) {
  // The point r where the polynomial of the bytes is evaluated (its reserved bits are cleared by the algorithm), then what is added.
  static constexpr unsigned char kKey[32] = {'p', 'i', 't', 'h', ' ', 'c', 'h', 'e', 'c', 'k', 's', 'u', 'm', ' ', 'o', 'f',
                                             ' ', 'p', 'r', 'e', 'p', 'a', 'c', 'k', 'e', 'd', ' ', 'b', 'y', 't', 'e', 's'};
  const std::unique_ptr<EVP_MAC, FreeMac> mac = FetchPoly1305();
  CHECK(mac != nullptr);
  const std::unique_ptr<EVP_MAC_CTX, FreeContext> context(EVP_MAC_CTX_new(mac.get()));
  CHECK(context != nullptr);
  CHECK(EVP_MAC_init(context.get(), kKey, sizeof(kKey), nullptr) == 1);
  CHECK(EVP_MAC_update(context.get(), bytes.data(), bytes.size()) == 1);
  Checksum sum;
  size_t length = 0;
  CHECK(EVP_MAC_final(context.get(), sum.data(), &length, sum.size()) == 1);
  CHECK(length == sum.size());
  return sum;
}

}  // namespace pith
