// Which files of a repository a model needs: pure functions of its listing. Pickled weights are never among them: unpickling runs code.
// Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "hub/hub_answers.h"

namespace pith {

constexpr char kIndexFileName[] = "model.safetensors.index.json";

struct FileSelection {
  std::vector<RepoFile> files;      // small files first, then weights
  bool index_names_more = false;    // kIndexFileName is among `files`; AddShards needs its content
  std::vector<std::string> absent;  // names that loaders ask for and the repository lacks
};

// Without `include`: config, tokenizer, chat template, licence, and model.safetensors or its index; or else the only GGUF file. With it:
// the files that match one of its globs (* matches "/" too), and the small files as well when safetensors are among them. Errors, naming
// what the repository has: kNotFound (no model, no match), kUnimplemented (weights in other formats), kInvalidArgument (several GGUF files
// to choose from).
absl::StatusOr<FileSelection> SelectFiles(const std::vector<RepoFile>& listing, const std::vector<std::string>& include);

// Adds the shards that the index names. Errors: kDataLoss for a bad index or a shard that the repository lacks.
absl::Status AddShards(const std::vector<RepoFile>& listing, absl::string_view index, FileSelection* selection);

}  // namespace pith
