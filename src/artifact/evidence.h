// evidence.json: what was measured of an artifact against its reference, bound to the content of both. Lies in the artifact's directory
// (beside a GGUF file as NAME.gguf.evidence.json); servers compare requests with it.
//
//   {"schema_version": 1, "version": 1, "artifact_sha256": "...", "reference_sha256": "...",        ArtifactReader::Fingerprint
//    "records": [{"metric": "kl_mean", "slice": "code", "temperature": 0.1, "context": 4096, "kv_cache": "int8",
//                 "data_path": "W4A16/int16", "n": 6144, "value": 0.05, "ci95": [0.04, 0.06], "verdict": "ok",
//                 "command": "pith eval ...", "version": "0.1.0", "date": "2026-11-30T12:00:00Z"}, ...]}
// temperature is null where none enters (figures of the raw distribution). docs/evidence.md describes the fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/json.h"

namespace pith {

enum class EvidenceVerdict { kOk, kRegression, kUnknown };

// "ok", "regression", "unknown".
absl::string_view EvidenceVerdictName(EvidenceVerdict verdict);

// Where a figure holds: two figures with equal conditions are of the same thing, and the later one replaces the earlier.
struct EvidenceConditions {
  std::string metric;                 // "kl_mean", "kl_p99", "ppl_ratio", "same_top", "accuracy_delta", "acceptance", ...
  std::string slice;                  // "math", "code", "long_context", "multilingual", "prose", ... or "all"
  std::optional<double> temperature;  // >= 0
  int64_t context = 0;                // tokens, at least 1
  std::string kv_cache;               // "bf16", "int8", "fp8"
  std::string data_path;              // DecoderModel::DataPathName of the artifact
  bool operator==(const EvidenceConditions&) const = default;
};

struct EvidenceRecord {
  EvidenceConditions conditions;
  int64_t n = 0;             // tokens or items it is made from
  double value = 0;          // KL in nats, ratios and shares without unit, differences as artifact - reference
  double low = 0, high = 0;  // 95 % interval
  EvidenceVerdict verdict = EvidenceVerdict::kUnknown;
  std::string command;        // that repeats it
  std::string version, date;  // of pith; ISO 8601 in UTC
  bool operator==(const EvidenceRecord&) const = default;
};

struct Evidence {
  std::string artifact_sha256, reference_sha256;  // 64 lower-case hex digits
  std::vector<EvidenceRecord> records;
  bool operator==(const Evidence&) const = default;
};

OrderedJson ToJson(const Evidence& evidence);
// Errors: kDataLoss for a missing or mistyped field, a number that is not finite, an interval that is none, an unknown version.
absl::StatusOr<Evidence> ParseEvidence(absl::string_view text);

// Where the evidence of a model lies: "DIR/evidence.json", "FILE.gguf.evidence.json".
std::string EvidencePath(const std::string& model);

// nullopt when the model has none. Errors: kDataLoss naming the file, kAborted.
absl::StatusOr<std::optional<Evidence>> ReadEvidence(const std::string& model);

// Whether the evidence is of the model with this fingerprint. Errors: kFailedPrecondition naming both.
absl::Status CheckEvidenceBinding(const Evidence& evidence, absl::string_view artifact_sha256);

// Puts `fresh` into what the model has already: records of equal conditions are replaced, the others kept in their order. What is there
// for another artifact or another reference is dropped, and `dropped` (may be null) says how many records that were. Whole or not at all.
// Errors: kDataLoss when what is there cannot be read, kPermissionDenied, kAborted.
absl::Status AttachEvidence(const std::string& model, const Evidence& fresh, int64_t* dropped);

}  // namespace pith
