// What `pith eval` does with its figures beside printing them: judges them by a gate, attaches them to the artifact as evidence, and writes
// the HTML report.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/json.h"
#include "cli/model_bundle.h"
#include "eval/evidence_records.h"
#include "eval/quality_gate.h"

namespace CLI {
class App;
}

namespace pith {

struct QualityRecordOptions {
  std::string gate, html;  // paths; empty: none
  bool attach = false;
};
void AddQualityRecordFlags(CLI::App& app, QualityRecordOptions& options);

// One measured model. quality_at(confidence) summarizes the same tokens with intervals of another confidence.
struct MeasuredModel {
  ModelBundle* bundle = nullptr;
  const ModelQuality* quality = nullptr;
  MeasurementConditions at;
  std::function<ModelQuality(double confidence)> quality_at;
  std::vector<GateFigure> tasks;  // of questions that were asked
};

// One run of `pith eval`: Prepare before the work, Judge for each model, Finish when the figures are printed.
class QualityRecord {
 public:
  QualityRecord() = default;  // judges by nothing and writes nothing
  // Reads the gate, and checks that the report can be written. Errors: those of ReadGate, kPermissionDenied.
  static absl::StatusOr<QualityRecord> Prepare(const QualityRecordOptions& options, const std::string& command_line);

  // Adds "gate", and for a record or a report "bytes", "sha256" and "blocks", to the model's entry in the result; attaches its evidence.
  absl::Status Judge(ModelBundle& reference, const MeasuredModel& model, OrderedJson& entry);
  // Adds what the report says of the run to the result, and writes it. kFailedPrecondition when a gate was not passed, by any model.
  absl::Status Finish(const ModelBundle& reference, OrderedJson& result) const;

 private:
  absl::Status Attach(ModelBundle& reference, const MeasuredModel& model, absl::Span<const GateResult> results, const std::string& sha256);

  QualityRecordOptions options_;
  std::vector<GateLine> gate_;
  std::string command_line_, date_;
  std::vector<std::string> refusals_;  // of models, in order
};

}  // namespace pith
