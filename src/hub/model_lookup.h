// Finds a model in the cache by the name of its repository, without the network and without writing anything. Thread-safe, no state.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "hub/repo_id.h"

namespace pith {

// The snapshot's directory when it holds config.json and all of its safetensors, else the path of its only GGUF file. Errors, which say
// what to run: kNotFound when the revision is not in the cache or only a part of it; kInvalidArgument when there are several GGUF files.
absl::StatusOr<std::string> FindCachedModel(const std::string& cache_directory, const RepoId& repo);

}  // namespace pith
