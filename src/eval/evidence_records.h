// From the figures of a measurement to the records that travel with the artifact and to what a gate judges: the same list of figures.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "artifact/evidence.h"
#include "eval/quality_gate.h"
#include "eval/quality_metrics.h"

namespace pith {

// Where all figures of one measurement hold.
struct MeasurementConditions {
  int64_t context = 0;              // tokens per window
  std::string kv_cache, data_path;  // of the artifact
};

// One record per figure and slice, "all" first; of what is served one per temperature without cuts (evidence has no place for top-k and
// top-p). The verdict is kUnknown; command, version and date are left to the caller.
std::vector<EvidenceRecord> MakeEvidenceRecords(const ModelQuality& quality, const MeasurementConditions& at);

// The same figures in the same order. quality_at(confidence) gives the quality with intervals of that confidence, every time the same
// object; it is called when the gate asks.
std::vector<GateFigure> MakeGateFigures(const ModelQuality& quality, const MeasurementConditions& at,
                                        std::function<const ModelQuality&(double confidence)> quality_at);

// kRegression for records that a line of the gate failed on, kOk for those that all lines about them passed, the rest stays kUnknown.
void SetVerdicts(absl::Span<const GateResult> results, absl::Span<EvidenceRecord> records);

}  // namespace pith
