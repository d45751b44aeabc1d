// What the hub's API says (https://huggingface.co/docs/hub/api), read with suspicion: hashes must be hashes, and names must stay inside the
// directory they are joined to. Thread-safe, no state. Errors: kDataLoss.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "hub/content_hash.h"
#include "hub/repo_id.h"

namespace pith {

// A file of a repository at one commit.
struct RepoFile {
  std::string name;  // "config.json", "BF16/model.gguf"
  int64_t size = 0;  // in bytes
  ContentId id;      // SHA-256 when Git LFS stores it, else git SHA-1

  friend bool operator==(const RepoFile&, const RepoFile&) = default;
};

// Addresses below an endpoint without "/" at the end.
std::string RevisionUrl(const std::string& endpoint, const RepoId& repo);
std::string TreeUrl(const std::string& endpoint, const RepoId& repo, const std::string& commit);
std::string FileUrl(const std::string& endpoint, const RepoId& repo, const std::string& commit, const std::string& name);
// Every byte but letters, digits, "-", "_", ".", "~" as %XX; "/" stays with `keep_slashes`.
std::string UrlEncode(absl::string_view text, bool keep_slashes);

// The commit in the answer about a revision.
absl::StatusOr<std::string> ParseRevision(absl::string_view json);
// The files in one page of a listing; folders are left out.
absl::StatusOr<std::vector<RepoFile>> ParseTreePage(absl::string_view json);
// The URL of rel="next" in a Link header; empty when there is none.
std::string NextPageUrl(absl::string_view link_header);
// The names of the shards in a model.safetensors.index.json, sorted, each once.
absl::StatusOr<std::vector<std::string>> ParseIndexShards(absl::string_view json);

}  // namespace pith
