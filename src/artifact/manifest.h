// pith.json: what an artifact consists of and where it came from. Lies in the artifact's directory beside the files it lists.
//
//   {"schema_version": 1, "pith_version": "0.1.0",
//    "files": {"config.json": {"size": 612, "sha256": "..."}, ...},          every file but pith.json, evidence.json and README.md
//    "source": {"fingerprint": "..."},                                       ArtifactReader::Fingerprint of the model it was made from
//    "recipe": {...}, "calibration_sha256": "...", "layers": [...], "data_path": [...]}     as given by whoever made it, null when absent
// docs/formats/artifact.md describes the fields.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json.h"

namespace pith {

inline constexpr char kManifestName[] = "pith.json";
inline constexpr char kEvidenceName[] = "evidence.json";

struct ManifestFile {
  uint64_t size = 0;
  std::string sha256;  // 64 lower-case hex digits
  bool operator==(const ManifestFile&) const = default;
};

struct Manifest {
  std::string pith_version;
  std::map<std::string, ManifestFile> files;
  std::string source_fingerprint;
  OrderedJson recipe;              // what decided the bytes
  std::string calibration_sha256;  // of the token ids of the calibration data; empty: none was used
  OrderedJson layers;              // per layer: errors
  OrderedJson data_path;           // per quantized module: stored bits, scales, packing
};

OrderedJson ToJson(const Manifest& manifest);
// Errors: kDataLoss for a missing or mistyped field, an unknown schema_version, or a file name that is no plain name.
absl::StatusOr<Manifest> ParseManifest(absl::string_view text);

// The manifest of a model directory; nullopt when it has none. Errors: kDataLoss naming the file, kAborted.
absl::StatusOr<std::optional<Manifest>> ReadManifest(const std::string& directory);

// Hashes every file again and compares with the manifest. OK when all agree and no other file lies in the directory (hidden files,
// evidence.json and README.md aside). Errors: kDataLoss naming the first file that differs and how; kNotFound when there is no manifest.
absl::Status VerifyManifest(const std::string& directory);

}  // namespace pith
