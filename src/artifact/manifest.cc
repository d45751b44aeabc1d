#include "artifact/manifest.h"

#include "absl/strings/match.h"
#include "artifact/model_card.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr int kSchemaVersion = 1;
constexpr size_t kMaxManifestBytes = size_t{64} << 20;
constexpr int64_t kMaxFileBytes = int64_t{1} << 62;

bool IsPlainName(absl::string_view name) {
  return !name.empty() && name != "." && name != ".." && Printable(name, 1024) == std::string(name) && !absl::StrContains(name, "/");
}

absl::StatusOr<std::map<std::string, ManifestFile>> ParseFiles(const Json& manifest) {
  const Json* files = FindMember(manifest, "files");
  if (files == nullptr || !files->is_object())
    return BadFileError("\"files\": expected an object, found ", files == nullptr ? "nothing" : "another type");
  std::map<std::string, ManifestFile> parsed;
  for (const auto& [name, entry] : files->items()) {
    if (!IsPlainName(name)) return BadFileError("\"files\": expected plain file names, found \"", Printable(name), "\"");
    ManifestFile file;
    const auto size = GetInt(entry, "size", 0, kMaxFileBytes);
    if (!size.ok()) return Annotate(size.status(), absl::StrCat("\"files\": ", name));
    file.size = static_cast<uint64_t>(*size);
    const auto sha256 = GetString(entry, "sha256");
    if (!sha256.ok()) return Annotate(sha256.status(), absl::StrCat("\"files\": ", name));
    if (!IsSha256(*sha256))
      return BadFileError("\"files\": ", name, ": \"sha256\": expected 64 lower-case hex digits, found \"", Printable(*sha256, 80), "\"");
    file.sha256 = *sha256;
    parsed.emplace(name, file);
  }
  return parsed;
}

OrderedJson Member(const Json& object, absl::string_view key) {
  const Json* member = FindMember(object, key);
  return member == nullptr ? OrderedJson() : OrderedJson(*member);
}

absl::Status VerifyFile(const std::string& path, const ManifestFile& expected) {
  if (!FileExists(path)) return BadFileError("expected a file of ", expected.size, " bytes, found none");
  ASSIGN_OR_RETURN(const uint64_t size, FileSize(path));
  if (size != expected.size) return BadFileError("expected ", expected.size, " bytes, found ", size);
  ASSIGN_OR_RETURN(const std::string sha256, Sha256OfFile(path));
  if (sha256 != expected.sha256) return BadFileError("expected SHA-256 ", expected.sha256, ", found ", sha256);
  return absl::OkStatus();
}

}  // namespace

OrderedJson ToJson(const Manifest& manifest) {
  OrderedJson files = OrderedJson::object();
  for (const auto& [name, file] : manifest.files) files[name] = {{"size", file.size}, {"sha256", file.sha256}};
  OrderedJson json = {{"schema_version", kSchemaVersion}, {"pith_version", manifest.pith_version}};
  json["files"] = std::move(files);
  json["source"] = {{"fingerprint", manifest.source_fingerprint}};
  json["recipe"] = manifest.recipe;
  json["calibration_sha256"] = manifest.calibration_sha256.empty() ? OrderedJson() : OrderedJson(manifest.calibration_sha256);
  json["layers"] = manifest.layers;
  json["data_path"] = manifest.data_path;
  return json;
}

absl::StatusOr<Manifest> ParseManifest(absl::string_view text) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(text, {.max_bytes = kMaxManifestBytes}));
  RETURN_IF_ERROR(GetInt(json, "schema_version", kSchemaVersion, kSchemaVersion).status());
  Manifest manifest;
  ASSIGN_OR_RETURN(manifest.pith_version, GetString(json, "pith_version"));
  ASSIGN_OR_RETURN(manifest.files, ParseFiles(json));
  if (const Json* source = FindMember(json, "source"); source != nullptr) {
    ASSIGN_OR_RETURN(manifest.source_fingerprint, GetString(*source, "fingerprint", ""));
  }
  ASSIGN_OR_RETURN(manifest.calibration_sha256, GetString(json, "calibration_sha256", ""));
  manifest.recipe = Member(json, "recipe");
  manifest.layers = Member(json, "layers");
  manifest.data_path = Member(json, "data_path");
  return manifest;
}

absl::StatusOr<std::optional<Manifest>> ReadManifest(const std::string& directory) {
  const std::string path = JoinPath(directory, kManifestName);
  if (!FileExists(path)) return std::optional<Manifest>();
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxManifestBytes));
  absl::StatusOr<Manifest> manifest = ParseManifest(text);
  if (!manifest.ok()) return Annotate(manifest.status(), Printable(path, 500));
  return std::optional<Manifest>(*std::move(manifest));
}

absl::Status VerifyManifest(const std::string& directory) {
  ASSIGN_OR_RETURN(const std::optional<Manifest> manifest, ReadManifest(directory));
  if (!manifest.has_value())
    return MissingInputError(Printable(JoinPath(directory, kManifestName), 500), ": expected a manifest, found none");
  for (const auto& [name, file] : manifest->files)
    RETURN_IF_ERROR(Annotate(VerifyFile(JoinPath(directory, name), file), Printable(JoinPath(directory, name), 500)));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    if (name[0] == '.' || name == kManifestName || name == kEvidenceName || name == kModelCardName || manifest->files.contains(name))
      continue;
    return BadFileError(Printable(JoinPath(directory, name), 500), ": expected only files of the manifest, found this one");
  }
  return absl::OkStatus();
}

}  // namespace pith
