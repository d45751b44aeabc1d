#include "artifact/safetensors_shards.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/foreign_file.h"
#include "base/json.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr size_t kMaxIndexBytes = size_t{256} << 20;
constexpr size_t kMaxFileNameBytes = 255;

absl::Status CheckShardName(absl::string_view name) {
  const auto refuse = [&](absl::string_view expected) {
    return BadFileError("weight_map: expected ", expected, " as shard, found \"", Printable(name), "\"");
  };
  if (name.empty() || name.size() > kMaxFileNameBytes) return refuse("a file name of 1 to 255 bytes");
  if (HasPickleName(name)) return refuse("a safetensors file (pickled checkpoints are never opened, since unpickling runs code)");
  if (!absl::EndsWith(name, ".safetensors")) return refuse("a name ending in .safetensors");
  if (name[0] == '.') return refuse("a plain file name");
  for (const char c : name) {
    if (c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return refuse("a plain file name inside the directory");
  }
  return absl::OkStatus();
}

absl::Status NoWeights(const std::string& directory) {
  std::string found = "neither";
  if (const auto names = ListDirectory(directory); names.ok()) {
    for (const std::string& name : *names) {
      if (HasPickleName(name)) {
        found = absl::StrCat("only \"", Printable(name),
                             "\", a name of pickled checkpoints, which are never opened since unpickling runs code");
      } else if (absl::EndsWith(name, ".gguf")) {
        found = absl::StrCat("\"", Printable(name), "\" (give the path of the GGUF file itself)");
      } else {
        continue;
      }
      break;
    }
  }
  return MissingInputError(Printable(directory, 500), ": expected ", kSafetensorsFileName, " or ", kSafetensorsIndexName, ", found ",
                           found);
}

}  // namespace

std::string ShardFileName(int64_t shard, int64_t num_shards) {
  return absl::StrFormat("model-%05d-of-%05d.safetensors", shard, num_shards);
}

absl::StatusOr<std::map<std::string, std::string>> ParseSafetensorsIndex(absl::string_view text) {
  const auto parsed = ParseJson(text, {.max_depth = 4, .max_bytes = kMaxIndexBytes});
  if (!parsed.ok()) return BadFileError(parsed.status().message(), FoundContent(text));
  const Json& index = *parsed;
  if (!index.is_object()) return BadFileError("expected an object, found ", Printable(DumpJson(index), 40));
  for (const auto& [key, value] : index.items()) {
    if (key != "metadata" && key != "weight_map")
      return BadFileError("expected only metadata and weight_map, found \"", Printable(key), "\"");
  }
  const Json* weight_map = FindMember(index, "weight_map");
  if (weight_map == nullptr || !weight_map->is_object()) return BadFileError("weight_map: expected an object of tensor and file names");
  if (weight_map->empty()) return BadFileError("weight_map: expected at least one tensor, found none");
  std::map<std::string, std::string> files;
  for (const auto& [name, file] : weight_map->items()) {
    if (!file.is_string()) {
      return BadFileError("weight_map: \"", Printable(name), "\": expected a file name, found ", Printable(DumpJson(file), 40));
    }
    const std::string& file_name = file.get_ref<const std::string&>();
    RETURN_IF_ERROR(CheckShardName(file_name));
    files.emplace_hint(files.end(), name, file_name);
  }
  return files;
}

std::string MakeSafetensorsIndex(const std::map<std::string, std::string>& weight_map, uint64_t total_size) {
  const Json index = {{"metadata", {{"total_size", total_size}}}, {"weight_map", weight_map}};
  return DumpJson(index, 2) + "\n";
}

absl::Status SafetensorsShards::AddFile(const std::string& path) {
  ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path));
  files_.push_back(std::make_unique<SafetensorsFile>(std::move(file)));
  const SafetensorsFile* added = files_.back().get();
  for (const SafetensorsTensor& tensor : added->tensors()) {
    const auto [it, is_new] = index_.emplace(tensor.name, tensors_.size());
    if (!is_new) {
      return BadFileError(Printable(path, 500), ": tensor \"", Printable(tensor.name), "\": expected it in one shard, found it in ",
                          BaseName(tensors_[it->second].file->path()), " too");
    }
    tensors_.push_back({added, &tensor});
  }
  return absl::OkStatus();
}

absl::Status SafetensorsShards::AddIndexedFiles(const std::string& directory, const std::map<std::string, std::string>& weight_map) {
  std::set<std::string> names;
  for (const auto& [tensor, file] : weight_map) names.insert(file);
  for (const std::string& name : names) RETURN_IF_ERROR(AddFile(JoinPath(directory, name)));
  for (const auto& [name, file] : weight_map) {
    const ShardedTensor found = Find(name);
    const std::string found_in = found.tensor == nullptr ? "no shard" : BaseName(found.file->path());
    if (found_in != file) return BadFileError("weight_map: \"", Printable(name), "\": expected it in ", file, ", found it in ", found_in);
  }
  for (const ShardedTensor& entry : tensors_) {
    if (weight_map.find(entry.tensor->name) == weight_map.end()) {
      return BadFileError("weight_map: expected every tensor of the shards, found no \"", Printable(entry.tensor->name), "\" of ",
                          BaseName(entry.file->path()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<SafetensorsShards> SafetensorsShards::Open(const std::string& directory) {
  const std::string single = JoinPath(directory, kSafetensorsFileName), index_path = JoinPath(directory, kSafetensorsIndexName);
  SafetensorsShards shards;
  if (FileExists(single) && FileExists(index_path)) {
    return BadFileError(Printable(directory, 500), ": expected either ", kSafetensorsFileName, " or ", kSafetensorsIndexName,
                        ", found both");
  }
  if (FileExists(single)) {
    RETURN_IF_ERROR(shards.AddFile(single));
  } else if (FileExists(index_path)) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(index_path, kMaxIndexBytes));
    const auto weight_map = ParseSafetensorsIndex(text);
    if (!weight_map.ok()) return Annotate(weight_map.status(), Printable(index_path, 500));
    RETURN_IF_ERROR(Annotate(shards.AddIndexedFiles(directory, *weight_map), Printable(index_path, 500)));
  } else {
    return NoWeights(directory);
  }
  std::sort(shards.tensors_.begin(), shards.tensors_.end(),
            [](const ShardedTensor& a, const ShardedTensor& b) { return a.tensor->name < b.tensor->name; });
  for (size_t i = 0; i < shards.tensors_.size(); ++i) shards.index_[shards.tensors_[i].tensor->name] = i;
  return shards;
}

ShardedTensor SafetensorsShards::Find(absl::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? ShardedTensor{} : tensors_[it->second];
}

}  // namespace pith
