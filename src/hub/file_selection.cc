#include "hub/file_selection.h"

#include <fnmatch.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "base/foreign_file.h"
#include "base/model_files.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr char kConfigName[] = "config.json";
constexpr char kWeightsName[] = "model.safetensors";
constexpr size_t kNamesInMessage = 12;
constexpr int64_t kMaxLegalBytes = int64_t{1} << 20;

// Of artifacts that pith wrote.
constexpr absl::string_view kArtifactNames[] = {"pith.json", "evidence.json"};

const RepoFile* Find(const std::vector<RepoFile>& listing, absl::string_view name) {
  const auto it = std::find_if(listing.begin(), listing.end(), [&](const RepoFile& file) { return file.name == name; });
  return it == listing.end() ? nullptr : &*it;
}

bool IsGguf(const RepoFile& file) { return absl::EndsWithIgnoreCase(file.name, ".gguf"); }
bool IsSafetensors(const RepoFile& file) { return absl::EndsWith(file.name, ".safetensors"); }

bool IsLegalText(const RepoFile& file) {
  return !absl::StrContains(file.name, '/') && file.size <= kMaxLegalBytes && pith::IsLegalText(file.name);
}

// "a, b and 7 more"
std::string Names(const std::vector<RepoFile>& files) {
  std::vector<std::string> names;
  for (size_t i = 0; i < files.size() && i < kNamesInMessage; ++i) names.push_back(Printable(files[i].name, 100));
  std::string text = absl::StrJoin(names, ", ");
  if (files.size() > names.size()) absl::StrAppend(&text, " and ", files.size() - names.size(), " more");
  return text.empty() ? "none" : text;
}

template <typename Predicate> std::vector<RepoFile> Filter(const std::vector<RepoFile>& listing, const Predicate& predicate) {
  std::vector<RepoFile> chosen;
  std::copy_if(listing.begin(), listing.end(), std::back_inserter(chosen), predicate);
  return chosen;
}

void Add(const RepoFile& file, FileSelection* selection) {
  if (Find(selection->files, file.name) == nullptr) selection->files.push_back(file);
}

// config.json and all that is optional.
absl::Status AddSmallFiles(const std::vector<RepoFile>& listing, FileSelection* selection) {
  const RepoFile* config = Find(listing, kConfigName);
  if (config == nullptr) return MissingInputError("expected a config.json beside the safetensors files, found none");
  Add(*config, selection);
  std::vector<absl::string_view> optional(SideFileTable().begin(), SideFileTable().end());
  for (const QuantizationFile& file : QuantizationFileTable()) optional.push_back(file.name);
  optional.insert(optional.end(), std::begin(kArtifactNames), std::end(kArtifactNames));
  for (const absl::string_view name : optional) {
    if (const RepoFile* file = Find(listing, name); file != nullptr) {
      Add(*file, selection);
    } else {
      selection->absent.emplace_back(name);
    }
  }
  for (const RepoFile& file : listing) {
    if (IsLegalText(file)) Add(file, selection);
  }
  return absl::OkStatus();
}

absl::Status NoWeights(const std::vector<RepoFile>& listing) {
  const std::vector<RepoFile> pickles = Filter(listing, [](const RepoFile& file) { return HasPickleName(file.name); });
  const std::vector<RepoFile> tensors = Filter(listing, IsSafetensors);
  if (!tensors.empty()) {
    return NotSupportedError("expected ", kWeightsName, ", ", kIndexFileName, " or a GGUF file, found only ", Names(tensors));
  }
  if (!pickles.empty()) {
    return NotSupportedError("expected safetensors or GGUF files, found only pickled weights (", Names(pickles),
                             "), which are never fetched since unpickling runs code; look for a repository or revision with safetensors");
  }
  return MissingInputError("expected a model (safetensors or GGUF files), found none among ", listing.size(), " files");
}

absl::StatusOr<FileSelection> SelectIncluded(const std::vector<RepoFile>& listing, const std::vector<std::string>& include) {
  FileSelection selection;
  std::vector<RepoFile> matches;
  for (const std::string& glob : include) {
    const std::vector<RepoFile> found = Filter(listing,
                                               [&](const RepoFile& file) { return fnmatch(glob.c_str(), file.name.c_str(), 0) == 0; });
    if (found.empty()) {
      const std::vector<RepoFile> weights = Filter(listing, [](const RepoFile& file) { return IsGguf(file) || IsSafetensors(file); });
      return MissingInputError("--include: expected a file that matches ", Printable(glob), ", found ",
                               weights.empty() ? "no weights at all" : absl::StrCat("only ", Names(weights)));
    }
    matches.insert(matches.end(), found.begin(), found.end());
  }
  const std::vector<RepoFile> pickles = Filter(matches, [](const RepoFile& file) { return HasPickleName(file.name); });
  if (!pickles.empty()) {
    return NotSupportedError("--include: expected safetensors or GGUF files, found pickled weights (", Names(pickles),
                             "), which are never fetched since unpickling runs code");
  }
  if (std::any_of(matches.begin(), matches.end(), IsSafetensors)) RETURN_IF_ERROR(AddSmallFiles(listing, &selection));
  for (const RepoFile& file : matches) Add(file, &selection);
  return selection;
}

}  // namespace

absl::StatusOr<FileSelection> SelectFiles(const std::vector<RepoFile>& listing, const std::vector<std::string>& include) {
  if (!include.empty()) return SelectIncluded(listing, include);
  FileSelection selection;
  const RepoFile* weights = Find(listing, kWeightsName);
  const RepoFile* index = Find(listing, kIndexFileName);
  if (weights != nullptr || index != nullptr) {
    RETURN_IF_ERROR(AddSmallFiles(listing, &selection));
    selection.index_names_more = weights == nullptr;
    if (index == nullptr) selection.absent.emplace_back(kIndexFileName);
    if (weights == nullptr) selection.absent.emplace_back(kWeightsName);
    Add(weights != nullptr ? *weights : *index, &selection);
    return selection;
  }
  const std::vector<RepoFile> ggufs = Filter(listing, IsGguf);
  if (ggufs.empty()) return NoWeights(listing);
  if (ggufs.size() > 1) {
    return UsageError("expected --include GLOB to choose among ", ggufs.size(), " GGUF files, found none; there are ", Names(ggufs));
  }
  selection.files = ggufs;
  return selection;
}

absl::Status AddShards(const std::vector<RepoFile>& listing, absl::string_view index, FileSelection* selection) {
  const absl::StatusOr<std::vector<std::string>> shards = ParseIndexShards(index);
  if (!shards.ok()) return Annotate(shards.status(), kIndexFileName);
  for (const std::string& name : *shards) {
    const RepoFile* file = Find(listing, name);
    if (file == nullptr) {
      return BadFileError(kIndexFileName, ": expected shards that the repository has, found ", Printable(name), ", which it lacks");
    }
    if (!IsSafetensors(*file)) {
      return BadFileError(kIndexFileName, ": expected names ending in .safetensors, found ", Printable(name));
    }
    Add(*file, selection);
  }
  selection->index_names_more = false;
  return absl::OkStatus();
}

}  // namespace pith
