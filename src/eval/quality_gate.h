// A quality gate: what an artifact must have kept, per slice, written down before it is measured. TOML, one table (or array of tables) per
// slice; "default" holds for every slice that was measured:
//
//   [default]
//   max_ppl_ratio = 1.05
//   [code]
//   temperature = 0.1       # conditions: temperature, context, kv_cache; a condition that is left out holds for every one measured
//   max_drop = 0.02         # limits: see GateLimitNames
//   confidence = 0.95       # of the interval that must lie within the limit; 0.95 when left out
//
// A limit is passed when the whole interval lies within it, failed when the whole interval lies beyond it, and otherwise undecided: there
// is not enough data (too few documents, too), which is never a pass. A line for what was not measured is undecided as well.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "artifact/evidence.h"
#include "base/json.h"
#include "eval/paired_statistics.h"

namespace pith {

// One limit of one table.
struct GateLine {
  std::string slice;  // "default" for each that was measured
  std::optional<double> temperature;
  std::optional<int64_t> context;
  std::optional<std::string> kv_cache;
  double confidence = 0.95;  // of a two-sided interval, between 0.5 and 1
  std::string limit;         // a name of GateLimitNames
  double bound = 0;
  int line = 0;  // in the file, from 1; 0: of the default gate
  bool operator==(const GateLine&) const = default;
};

// "max_drop" (accuracy the artifact may lose, a share), "max_kl_mean", "max_kl_p99", "max_served_kl_mean" (nats), "max_ppl_ratio",
// "max_total_variation", "min_same_top" (shares).
std::vector<absl::string_view> GateLimitNames();

// Pure. Errors: kDataLoss with the line: bad TOML, an unknown key, a value of another type or out of its range, a table without limits.
absl::StatusOr<std::vector<GateLine>> ParseGate(absl::string_view text);
// Errors: those of ParseGate with the path, and of ReadFile.
absl::StatusOr<std::vector<GateLine>> ReadGate(const std::string& path);

// A measured figure, with its interval at any confidence.
struct GateFigure {
  EvidenceConditions conditions;
  std::function<Estimate(double confidence)> estimate;
};

absl::string_view GateOutcomeName(Decision outcome);  // "passed", "failed", "undecided"

// What a line says of one figure, or of none: then the outcome is kNotEnoughData.
struct GateResult {
  GateLine line;
  std::optional<EvidenceConditions> conditions;
  std::optional<Estimate> estimate;
  Decision outcome = Decision::kNotEnoughData;
  std::string reason;  // one sentence with the numbers
};

// In the order of lines, then of figures. Deterministic.
std::vector<GateResult> ApplyGate(absl::Span<const GateLine> lines, absl::Span<const GateFigure> figures);

// kFailedPrecondition (exit 3) naming each line that failed and each that is undecided; OK when all passed.
absl::Status GateStatus(absl::Span<const GateResult> results);

// {"limit", "bound", "slice", ..., "outcome", "reason"}, one per result.
OrderedJson ToJson(absl::Span<const GateResult> results);

}  // namespace pith
