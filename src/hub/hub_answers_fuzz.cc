// Any bytes as an answer of the hub: each parser gives names and hashes that are safe to join to a path, or kDataLoss with a printable
// message.
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/sha256.h"
#include "hub/hub_answers.h"

namespace {

void CheckError(const absl::Status& status) {
  CHECK(status.code() == absl::StatusCode::kDataLoss);
  for (const char c : status.message()) CHECK(static_cast<unsigned char>(c) >= 0x20 && c != 0x7F);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto commit = pith::ParseRevision(text); commit.ok()) {
    CHECK(pith::IsCommitHash(*commit));
  } else {
    CheckError(commit.status());
  }
  if (const auto files = pith::ParseTreePage(text); files.ok()) {
    for (const pith::RepoFile& file : *files) {
      CHECK(pith::IsSafeFileName(file.name) && file.size >= 0);
      CHECK(file.id.kind == pith::ContentId::Kind::kSha256 ? pith::IsSha256(file.id.hex) : pith::IsCommitHash(file.id.hex));
      for (const char c : pith::UrlEncode(file.name, true)) CHECK(c > ' ' && c < 0x7F);
    }
  } else {
    CheckError(files.status());
  }
  if (const auto shards = pith::ParseIndexShards(text); shards.ok()) {
    for (const std::string& name : *shards) CHECK(pith::IsSafeFileName(name));
  } else {
    CheckError(shards.status());
  }
  CHECK(pith::NextPageUrl(text).size() <= size);
  return 0;
}
