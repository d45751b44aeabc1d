// Outcomes of tasks as figures: for evidence, for a gate, and as JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "eval/evidence_records.h"
#include "eval/task_evaluation.h"

namespace pith {

// Both models' results on the same items at one temperature.
struct TaskMeasurement {
  double temperature = 0;
  int64_t context = 0;  // tokens of the longest question with its answer
  std::shared_ptr<const std::vector<TaskItem>> items;
  std::vector<ItemResult> reference, model;
};

// "accuracy_delta" per slice, "all" first: model - reference. The measurement is copied into the figures.
std::vector<GateFigure> MakeTaskFigures(const TaskMeasurement& measurement, const std::string& kv_cache, const std::string& data_path,
                                        const BootstrapOptions& bootstrap);

// A record per figure, with its 95 % interval; verdict, command, version and date as of MakeEvidenceRecords.
std::vector<EvidenceRecord> MakeEvidenceRecords(absl::Span<const GateFigure> figures);

// [{"temperature", "slice", "items", "samples", "cut_off", "reference_rate", "model_rate", "difference", "mcnemar_p", ...}, ...] per slice.
OrderedJson ToJson(const TaskMeasurement& measurement, const BootstrapOptions& bootstrap);

}  // namespace pith
