// Where the model lies that a command was given: a path of this machine, or ORG/NAME of a repository that `pith pull` has fetched.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"

namespace pith {

// The argument itself when there is a file or directory of that name, or when it cannot be the name of a repository; else the path of that
// repository's model in the Hugging Face cache, found without the network. Errors: kNotFound, saying what to pull; kInvalidArgument when
// the cache has several GGUF files of it.
absl::StatusOr<std::string> FindModelPath(const std::string& argument);

// ArtifactReader::Open of FindModelPath.
absl::StatusOr<std::unique_ptr<ArtifactReader>> OpenModel(const std::string& argument);

// What to call the model: ORG/NAME of a repository, else the last part of the path.
std::string ModelName(const std::string& argument);

}  // namespace pith
