#include "cli/quality_record.h"

#include <map>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "artifact/evidence.h"
#include "artifact/model_card.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "cli/version.h"
#include "eval/html_report.h"
#include "eval/task_figures.h"

namespace pith {
namespace {

constexpr char kReportName[] = "report.json";  // of `pith quantize`
constexpr size_t kMaxReportBytes = size_t{64} << 20;

int64_t StoredBytes(const ArtifactReader& reader) {
  int64_t bytes = 0;
  for (const TensorInfo& tensor : reader.Tensors()) bytes += tensor.stored_bytes;
  return bytes;
}

// The errors layer by layer that `pith quantize` left in the artifact; null where it did not. A report that cannot be read is no reason to
// lose a measurement.
OrderedJson BlockErrors(const std::string& model) {
  const std::string path = JoinPath(model, kReportName);
  if (!IsDirectory(model) || !FileExists(path)) return nullptr;
  const auto text = ReadFile(path, kMaxReportBytes);
  if (!text.ok()) return nullptr;
  const auto report = ParseJson(*text);
  if (!report.ok()) return nullptr;
  const Json* blocks = FindMember(*report, "blocks");
  return blocks == nullptr ? OrderedJson() : OrderedJson(*blocks);
}

}  // namespace

void AddQualityRecordFlags(CLI::App& app, QualityRecordOptions& options) {
  app.add_option("--gate", options.gate, "limits per slice (TOML); exits with 3 unless all of them are passed");
  app.add_flag("--attach", options.attach, "write the figures into each model as evidence, bound to its content and the reference's");
  app.add_option("--html", options.html, "write a report as one self-contained page");
}

absl::StatusOr<QualityRecord> QualityRecord::Prepare(const QualityRecordOptions& options, const std::string& command_line) {
  QualityRecord record;
  record.options_ = options;
  record.command_line_ = command_line;
  record.date_ = absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone());
  if (!options.gate.empty()) {
    ASSIGN_OR_RETURN(record.gate_, ReadGate(options.gate));
  }
  if (!options.html.empty()) RETURN_IF_ERROR(Annotate(AtomicFileWriter::Create(options.html).status(), "--html"));
  return record;
}

absl::Status QualityRecord::Judge(ModelBundle& reference, const MeasuredModel& model, OrderedJson& entry) {
  std::map<double, ModelQuality> by_confidence;
  const auto quality_at = [&](double confidence) -> const ModelQuality& {
    if (confidence == BootstrapOptions().confidence) return *model.quality;  // what was measured already
    const auto found = by_confidence.find(confidence);
    return found != by_confidence.end() ? found->second : by_confidence.emplace(confidence, model.quality_at(confidence)).first->second;
  };
  std::vector<GateResult> results;
  if (!gate_.empty()) {
    std::vector<GateFigure> figures = MakeGateFigures(*model.quality, model.at, quality_at);
    figures.insert(figures.end(), model.tasks.begin(), model.tasks.end());
    results = ApplyGate(gate_, figures);
    entry["gate"] = ToJson(results);
    const absl::Status status = GateStatus(results);
    if (!status.ok()) refusals_.push_back(absl::StrCat(model.bundle->name, ": ", status.message()));
  }
  if (!options_.attach && options_.html.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string sha256, FingerprintOf(*model.bundle));
  entry["sha256"] = sha256;
  entry["bytes"] = StoredBytes(*model.bundle->reader);
  if (OrderedJson blocks = BlockErrors(model.bundle->reader->path()); !blocks.is_null()) entry["blocks"] = std::move(blocks);
  return options_.attach ? Attach(reference, model, results, sha256) : absl::OkStatus();
}

absl::Status QualityRecord::Attach(ModelBundle& reference, const MeasuredModel& model, absl::Span<const GateResult> results,
                                   const std::string& sha256) {
  Evidence evidence = {.artifact_sha256 = sha256};
  ASSIGN_OR_RETURN(evidence.reference_sha256, FingerprintOf(reference));
  evidence.records = MakeEvidenceRecords(*model.quality, model.at);
  for (EvidenceRecord& record : MakeEvidenceRecords(model.tasks)) evidence.records.push_back(std::move(record));
  SetVerdicts(results, absl::MakeSpan(evidence.records));
  for (EvidenceRecord& record : evidence.records) {
    record.command = command_line_;
    record.version = kVersion;
    record.date = date_;
  }
  int64_t dropped = 0;
  RETURN_IF_ERROR(AttachEvidence(model.bundle->reader->path(), evidence, &dropped));
  RETURN_IF_ERROR(RefreshModelCard(model.bundle->reader->path()));
  if (dropped > 0) {
    spdlog::warn("{}: {} of another artifact or reference dropped", EvidencePath(model.bundle->reader->path()), Plural(dropped, "record"));
  }
  return absl::OkStatus();
}

absl::Status QualityRecord::Finish(const ModelBundle& reference, OrderedJson& result) const {
  result["command"] = command_line_;
  result["date"] = date_;
  if (!options_.html.empty()) {
    result["reference_bytes"] = StoredBytes(*reference.reader);
    if (!reference.fingerprint.empty()) result["reference_sha256"] = reference.fingerprint;
    RETURN_IF_ERROR(WriteFileAtomically(options_.html, RenderHtmlReport(result)));
  }
  return refusals_.empty() ? absl::OkStatus() : RefusedError(absl::StrJoin(refusals_, "\n"));
}

}  // namespace pith
