#include "hub/hub_answers.h"

#include <limits>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/foreign_file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr JsonLimits kAnswerLimits = {.max_depth = 32, .max_bytes = size_t{64} << 20};
constexpr JsonLimits kIndexLimits = {.max_depth = 4, .max_bytes = size_t{256} << 20};

absl::StatusOr<Json> ParseAnswer(absl::string_view text, const JsonLimits& limits) {
  absl::StatusOr<Json> json = ParseJson(text, limits);
  if (!json.ok()) return BadFileError(json.status().message(), FoundContent(text));
  return json;
}

absl::StatusOr<ContentId> ParseContentId(const Json& entry) {
  if (const Json* lfs = FindMember(entry, "lfs"); lfs != nullptr) {
    ASSIGN_OR_RETURN(const std::string sha256, GetString(*lfs, "oid"));
    if (!IsSha256(sha256)) return BadFileError("lfs.oid: expected 64 hex digits, found \"", Printable(sha256, 80), "\"");
    return ContentId{ContentId::Kind::kSha256, sha256};
  }
  ASSIGN_OR_RETURN(const std::string sha1, GetString(entry, "oid"));
  if (!IsCommitHash(sha1)) return BadFileError("oid: expected 40 hex digits, found \"", Printable(sha1, 80), "\"");
  return ContentId{ContentId::Kind::kGitSha1, sha1};
}

absl::StatusOr<RepoFile> ParseFile(const Json& entry) {
  RepoFile file;
  ASSIGN_OR_RETURN(file.name, GetString(entry, "path"));
  if (!IsSafeFileName(file.name)) return BadFileError("path: expected a path inside the repository, found \"", Printable(file.name), "\"");
  ASSIGN_OR_RETURN(file.size, GetInt(entry, "size", 0, std::numeric_limits<int64_t>::max()));
  ASSIGN_OR_RETURN(file.id, ParseContentId(entry));
  return file;
}

}  // namespace

std::string UrlEncode(absl::string_view text, bool keep_slashes) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-_.~", c) || (keep_slashes && c == '/');
    if (plain && c != '\0') {
      encoded += c;
    } else {
      absl::StrAppendFormat(&encoded, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::string RevisionUrl(const std::string& endpoint, const RepoId& repo) {
  return absl::StrCat(endpoint, "/api/models/", repo.FullName(), "/revision/", UrlEncode(repo.revision, false));
}

std::string TreeUrl(const std::string& endpoint, const RepoId& repo, const std::string& commit) {
  return absl::StrCat(endpoint, "/api/models/", repo.FullName(), "/tree/", commit, "?recursive=true");
}

std::string FileUrl(const std::string& endpoint, const RepoId& repo, const std::string& commit, const std::string& name) {
  return absl::StrCat(endpoint, "/", repo.FullName(), "/resolve/", commit, "/", UrlEncode(name, true));
}

absl::StatusOr<std::string> ParseRevision(absl::string_view json) {
  ASSIGN_OR_RETURN(const Json answer, ParseAnswer(json, kAnswerLimits));
  ASSIGN_OR_RETURN(std::string commit, GetString(answer, "sha"));
  if (!IsCommitHash(commit)) return BadFileError("sha: expected a commit of 40 hex digits, found \"", Printable(commit, 80), "\"");
  return commit;
}

absl::StatusOr<std::vector<RepoFile>> ParseTreePage(absl::string_view json) {
  ASSIGN_OR_RETURN(const Json answer, ParseAnswer(json, kAnswerLimits));
  if (!answer.is_array()) return BadFileError("expected an array of files, found ", Printable(DumpJson(answer), 80));
  std::vector<RepoFile> files;
  for (const Json& entry : answer) {
    ASSIGN_OR_RETURN(const std::string type, GetString(entry, "type"));
    if (type != "file") continue;
    ASSIGN_OR_RETURN(RepoFile file, ParseFile(entry));
    files.push_back(std::move(file));
  }
  return files;
}

// <https://host/page2>; rel="next", <...>; rel="last"
std::string NextPageUrl(absl::string_view link_header) {
  while (true) {
    const size_t begin = link_header.find('<'), end = link_header.find('>', begin == absl::string_view::npos ? 0 : begin);
    if (begin == absl::string_view::npos || end == absl::string_view::npos) return "";
    const size_t after = link_header.find('<', end);
    const absl::string_view parameters = link_header.substr(end, after == absl::string_view::npos ? after : after - end);
    if (absl::StrContains(parameters, "rel=\"next\"")) return std::string(link_header.substr(begin + 1, end - begin - 1));
    if (after == absl::string_view::npos) return "";
    link_header.remove_prefix(after);
  }
}

absl::StatusOr<std::vector<std::string>> ParseIndexShards(absl::string_view json) {
  ASSIGN_OR_RETURN(const Json index, ParseAnswer(json, kIndexLimits));
  const Json* weight_map = FindMember(index, "weight_map");
  if (weight_map == nullptr || !weight_map->is_object() || weight_map->empty()) {
    return BadFileError("weight_map: expected an object of tensor and file names");
  }
  std::set<std::string> names;
  for (const auto& [tensor, file] : weight_map->items()) {
    if (!file.is_string() || !IsSafeFileName(file.get_ref<const std::string&>())) {
      return BadFileError("weight_map: \"", Printable(tensor), "\": expected a file name, found ", Printable(DumpJson(file), 80));
    }
    names.insert(file.get<std::string>());
  }
  return std::vector<std::string>(names.begin(), names.end());
}

}  // namespace pith
