#include "artifact/evidence.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "artifact/manifest.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr int64_t kSchemaVersion = 1;
constexpr size_t kMaxEvidenceBytes = size_t{64} << 20;
constexpr double kMaxTemperature = 100;
constexpr double kMaxFigure = 1e300;
constexpr int64_t kMaxCount = int64_t{1} << 53;

constexpr std::pair<EvidenceVerdict, absl::string_view> kVerdicts[] = {
    {EvidenceVerdict::kOk, "ok"}, {EvidenceVerdict::kRegression, "regression"}, {EvidenceVerdict::kUnknown, "unknown"}};

OrderedJson RecordToJson(const EvidenceRecord& record) {
  const EvidenceConditions& at = record.conditions;
  return {{"metric", at.metric},
          {"slice", at.slice},
          {"temperature", at.temperature.has_value() ? OrderedJson(*at.temperature) : OrderedJson()},
          {"context", at.context},
          {"kv_cache", at.kv_cache},
          {"data_path", at.data_path},
          {"n", record.n},
          {"value", record.value},
          {"ci95", {record.low, record.high}},
          {"verdict", EvidenceVerdictName(record.verdict)},
          {"command", record.command},
          {"version", record.version},
          {"date", record.date}};
}

absl::StatusOr<std::string> GetName(const Json& object, absl::string_view key) {
  ASSIGN_OR_RETURN(std::string text, GetString(object, key));
  if (text.empty()) return BadFileError("\"", key, "\": expected a name, found an empty string");
  return text;
}

absl::Status ParseConditions(const Json& json, EvidenceConditions* at) {
  ASSIGN_OR_RETURN(at->metric, GetName(json, "metric"));
  ASSIGN_OR_RETURN(at->slice, GetName(json, "slice"));
  if (FindMember(json, "temperature") != nullptr) {
    ASSIGN_OR_RETURN(at->temperature, GetDouble(json, "temperature", 0, kMaxTemperature));
  }
  ASSIGN_OR_RETURN(at->context, GetInt(json, "context", 1, kMaxCount));
  ASSIGN_OR_RETURN(at->kv_cache, GetName(json, "kv_cache"));
  ASSIGN_OR_RETURN(at->data_path, GetName(json, "data_path"));
  return absl::OkStatus();
}

absl::Status ParseInterval(const Json& json, EvidenceRecord* record) {
  const Json* interval = FindMember(json, "ci95");
  if (interval == nullptr || !interval->is_array() || interval->size() != 2 || !(*interval)[0].is_number() || !(*interval)[1].is_number())
    return BadFileError("\"ci95\": expected two numbers, found ", interval == nullptr ? "nothing" : Printable(DumpJson(*interval)));
  record->low = (*interval)[0].get<double>();
  record->high = (*interval)[1].get<double>();
  if (!std::isfinite(record->low) || !std::isfinite(record->high) || record->low > record->high)
    return BadFileError("\"ci95\": expected two numbers in ascending order, found ", Printable(DumpJson(*interval)));
  return absl::OkStatus();
}

absl::StatusOr<EvidenceVerdict> ParseVerdict(const Json& json) {
  ASSIGN_OR_RETURN(const std::string name, GetString(json, "verdict"));
  for (const auto& [verdict, known] : kVerdicts) {
    if (name == known) return verdict;
  }
  return BadFileError("\"verdict\": expected ok, regression or unknown, found \"", Printable(name), "\"");
}

absl::StatusOr<EvidenceRecord> ParseRecord(const Json& json) {
  if (!json.is_object()) return BadFileError("expected an object, found ", json.type_name());
  EvidenceRecord record;
  RETURN_IF_ERROR(ParseConditions(json, &record.conditions));
  ASSIGN_OR_RETURN(record.n, GetInt(json, "n", 0, kMaxCount));
  ASSIGN_OR_RETURN(record.value, GetDouble(json, "value", -kMaxFigure, kMaxFigure));
  RETURN_IF_ERROR(ParseInterval(json, &record));
  ASSIGN_OR_RETURN(record.verdict, ParseVerdict(json));
  ASSIGN_OR_RETURN(record.command, GetString(json, "command"));
  ASSIGN_OR_RETURN(record.version, GetString(json, "version"));
  ASSIGN_OR_RETURN(record.date, GetString(json, "date"));
  return record;
}

absl::StatusOr<std::string> GetSha256(const Json& object, absl::string_view key) {
  ASSIGN_OR_RETURN(std::string digest, GetString(object, key));
  if (!IsSha256(digest)) return BadFileError("\"", key, "\": expected 64 lower-case hex digits, found \"", Printable(digest, 80), "\"");
  return digest;
}

}  // namespace

absl::string_view EvidenceVerdictName(EvidenceVerdict verdict) {
  return std::find_if(std::begin(kVerdicts), std::end(kVerdicts), [&](const auto& entry) { return entry.first == verdict; })->second;
}

OrderedJson ToJson(const Evidence& evidence) {
  OrderedJson records = OrderedJson::array();
  for (const EvidenceRecord& record : evidence.records) records.push_back(RecordToJson(record));
  return {{"schema_version", kSchemaVersion},
          {"version", kSchemaVersion},
          {"artifact_sha256", evidence.artifact_sha256},
          {"reference_sha256", evidence.reference_sha256},
          {"records", std::move(records)}};
}

absl::StatusOr<Evidence> ParseEvidence(absl::string_view text) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(text, {.max_bytes = kMaxEvidenceBytes}));
  if (!json.is_object()) return BadFileError("expected an object, found ", json.type_name());
  RETURN_IF_ERROR(GetInt(json, "version", kSchemaVersion, kSchemaVersion).status());
  Evidence evidence;
  ASSIGN_OR_RETURN(evidence.artifact_sha256, GetSha256(json, "artifact_sha256"));
  ASSIGN_OR_RETURN(evidence.reference_sha256, GetSha256(json, "reference_sha256"));
  const Json* records = FindMember(json, "records");
  if (records == nullptr || !records->is_array())
    return BadFileError("\"records\": expected an array, found ", records == nullptr ? "nothing" : records->type_name());
  for (size_t i = 0; i < records->size(); ++i) {
    auto record = ParseRecord((*records)[i]);
    if (!record.ok()) return Annotate(record.status(), absl::StrCat("records[", i, "]"));
    evidence.records.push_back(*std::move(record));
  }
  return evidence;
}

std::string EvidencePath(const std::string& model) {
  return IsDirectory(model) ? JoinPath(model, kEvidenceName) : absl::StrCat(model, ".", kEvidenceName);
}

absl::StatusOr<std::optional<Evidence>> ReadEvidence(const std::string& model) {
  const std::string path = EvidencePath(model);
  if (!FileExists(path)) return std::nullopt;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxEvidenceBytes));
  auto evidence = ParseEvidence(text);
  if (!evidence.ok()) return Annotate(evidence.status(), path);
  return *std::move(evidence);
}

absl::Status CheckEvidenceBinding(const Evidence& evidence, absl::string_view artifact_sha256) {
  if (evidence.artifact_sha256 == artifact_sha256) return absl::OkStatus();
  return RefusedError("evidence: expected to be of the model with SHA-256 ", artifact_sha256, ", found evidence of ",
                      evidence.artifact_sha256, ": the model was changed after it was measured");
}

absl::Status AttachEvidence(const std::string& model, const Evidence& fresh, int64_t* dropped) {
  ASSIGN_OR_RETURN(std::optional<Evidence> merged, ReadEvidence(model));
  const bool same = merged.has_value() && merged->artifact_sha256 == fresh.artifact_sha256 &&
                    merged->reference_sha256 == fresh.reference_sha256;
  if (dropped != nullptr) *dropped = merged.has_value() && !same ? static_cast<int64_t>(merged->records.size()) : 0;
  if (!same) merged = Evidence{fresh.artifact_sha256, fresh.reference_sha256, {}};
  for (const EvidenceRecord& record : fresh.records) {
    const auto there = std::find_if(merged->records.begin(), merged->records.end(),
                                    [&](const EvidenceRecord& old) { return old.conditions == record.conditions; });
    if (there == merged->records.end()) {
      merged->records.push_back(record);
    } else {
      *there = record;
    }
  }
  return WriteFileAtomically(EvidencePath(model), DumpJson(ToJson(*merged), 1) + "\n");
}

}  // namespace pith
