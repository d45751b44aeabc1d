#include "cli/model_path.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "hub/hub_settings.h"
#include "hub/model_lookup.h"
#include "hub/repo_id.h"
#include "model/weight_check.h"

namespace pith {

absl::StatusOr<std::string> FindModelPath(const std::string& argument) {
  if (FileExists(argument)) return argument;
  const absl::StatusOr<RepoId> repo = ParseRepoId(argument);
  if (!repo.ok()) return argument;  // the reader says what is wrong with it
  ASSIGN_OR_RETURN(const std::string cache, HubCacheDirectory([](const char* name) { return std::getenv(name); }));
  absl::StatusOr<std::string> path = FindCachedModel(cache, *repo);
  if (absl::IsNotFound(path.status())) return MissingInputError(path.status().message(), " (and there is no such file or directory here)");
  return path;
}

absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenModel(const std::string& argument) {
  ASSIGN_OR_RETURN(const std::string path, FindModelPath(argument));
  ASSIGN_OR_RETURN(std::unique_ptr<ArtifactReader> reader, ArtifactReader::Open(path));
  if (const std::vector<std::string> unused = UnusedTensors(*reader); !unused.empty()) {
    spdlog::warn("{}: {}{}: not a part of the architecture that is known here, left out", Printable(path, 500), Printable(unused[0]),
                 unused.size() > 1 ? absl::StrCat(" (and ", unused.size() - 1, " more)") : "");
  }
  return reader;
}

std::string ModelName(const std::string& argument) {
  if (FileExists(argument)) return BaseName(argument);
  const absl::StatusOr<RepoId> repo = ParseRepoId(argument);
  return repo.ok() ? repo->FullName() : BaseName(argument);
}

}  // namespace pith
