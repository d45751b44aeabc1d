// What pith quantize prints: the plan, the estimate of --dry-run, and how the run went.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "base/json.h"
#include "compression/compression_plan.h"
#include "compression/compression_report.h"
#include "compression/disk_need.h"

namespace pith {

// One line.
std::string DescribePlan(const CompressionPlan& plan, const Recipe& recipe);

// Of LLM_INT8, one line: where its outlier columns come from; else empty.
std::string DescribeOutliers(const Recipe& recipe, bool calibrated);

// Bytes, and every tensor that would be written; as a table one line each.
OrderedJson PlanJson(const CompressionPlan& plan);
std::string PlanTable(const CompressionPlan& plan);

// A line per phase and one for all of them. `output_bytes`: of the disk, what stays.
std::string EstimateText(absl::Span<const PhaseUse> phases, const DiskNeed& disk, int64_t output_bytes, int threads);

// One line.
std::string Summary(const CompressionReport& report, const std::string& output);
// How many columns are kept in bf16, where any can be; else empty.
std::string OutlierSummary(const CompressionReport& report, const Recipe& recipe, bool calibrated);
// The errors of hidden states behind the last layer, where they were measured; else empty.
std::string BlockSummary(const CompressionReport& report);

// What --bits-per-weight measured and chose, a line per set of modules.
std::string SensitivityTable(absl::Span<const SensitivityReport> reports);

}  // namespace pith
