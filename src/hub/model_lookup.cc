#include "hub/model_lookup.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status.h"
#include "hub/cache_layout.h"
#include "hub/file_selection.h"

namespace pith {
namespace {

constexpr size_t kMaxIndexBytes = size_t{256} << 20;

// "" when the directory holds a whole model of safetensors, else the name of what is missing.
std::string MissingFile(const std::string& directory) {
  if (!FileExists(JoinPath(directory, "config.json"))) return "config.json";
  if (FileExists(JoinPath(directory, "model.safetensors"))) return "";
  const absl::StatusOr<std::string> index = ReadFile(JoinPath(directory, kIndexFileName), kMaxIndexBytes);
  if (!index.ok()) return "model.safetensors";
  const absl::StatusOr<std::vector<std::string>> shards = ParseIndexShards(*index);
  if (!shards.ok()) return "";  // the reader of the directory says what is wrong with it
  for (const std::string& shard : *shards) {
    if (!FileExists(JoinPath(directory, shard))) return shard;
  }
  return "";
}

// Paths of all GGUF files below a directory, sorted; links to blobs that are gone are none.
std::vector<std::string> GgufFiles(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code error;
  for (auto it = std::filesystem::recursive_directory_iterator(directory, error); !error && it != std::filesystem::end(it);
       it.increment(error)) {
    const std::string path = it->path().string();
    if (absl::EndsWithIgnoreCase(path, ".gguf") && FileExists(path)) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

absl::StatusOr<std::string> FindCachedModel(const std::string& cache_directory, const RepoId& repo) {
  const RepoCache cache(cache_directory, repo);
  const std::optional<std::string> commit = cache.CachedCommit(repo.revision);
  const std::string command = absl::StrCat("`pith pull ", repo.Text(), "`");
  if (!commit.has_value() || !IsDirectory(cache.SnapshotPath(*commit))) {
    return MissingInputError(repo.Text(), ": not in the cache ", Printable(cache_directory, 500), "; ", command, " fetches it");
  }
  const std::string directory = cache.SnapshotPath(*commit);
  const std::string missing = MissingFile(directory);
  if (missing.empty()) return directory;
  const std::vector<std::string> ggufs = GgufFiles(directory);
  if (ggufs.size() == 1) return ggufs[0];
  if (ggufs.size() > 1) {
    return UsageError(repo.Text(), ": expected one GGUF file in the cache, found ", ggufs.size(),
                      "; give the path of one: ", absl::StrJoin(ggufs, " "));
  }
  return MissingInputError(repo.Text(), ": only a part of it is in the cache (no ", Printable(missing), " in ", Printable(directory, 500),
                           "); ", command, " fetches the rest");
}

}  // namespace pith
