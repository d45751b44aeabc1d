// Turns a dense model into a quantized artifact by a recipe, layer by layer, in one streaming pass.
//
// Everything that can be refused is refused before the long work: a source that is not dense, an unknown architecture, a group size that
// does not divide (every such layer listed), layers of different schemes that serving engines fuse, an output that exists, an unfinished
// run of something else, too little disk, NaN or infinite weights (tensor and index). The artifact appears under its name whole, or not at
// all. The same recipe, source and calibration data give the same bytes for any number of threads, and after any number of interruptions:
// each decoder layer that is done is kept (checkpoint.h) until the artifact is whole.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"
#include "base/thread_pool.h"
#include "compression/calibration_data.h"
#include "compression/compression_plan.h"
#include "compression/compression_report.h"
#include "compression/disk_need.h"
#include "compression/recipe.h"

namespace pith {

struct CompressionOptions {
  std::string pith_version;
  // Called after each module of a phase ("checking", "quantizing"), and between calibration sequences with what is done so far; an error
  // ends the work with it. May be empty.
  std::function<absl::Status(absl::string_view phase, int64_t done, int64_t total)> progress;
  const CalibrationData* calibration = nullptr;  // borrowed; null: none
  bool resume = false;                           // continue what an interrupted run of the same output left, if there is any
  std::vector<SensitivityReport> sensitivities;  // for the report, where the recipe was made from them
};

// Whether the recipe's method or scheme cannot do without calibration data.
bool NeedsCalibration(const Recipe& recipe);

// Of data; null: none.
CalibrationSize SizeOf(const CalibrationData* calibration);

// Refuses what Compress would refuse, as far as it is known before there are calibration data: an output that cannot be made, an unfinished
// run that is in the way or differs, too little disk for `calibration`. `known_recipe`: of what the manifest will record of the recipe and,
// under "calibration", of the data (KnownJson) the fields that are known; others are not compared. Reads all weights where there is a run
// to continue, else none. Changes nothing. Errors: those of Compress.
absl::Status CheckRun(const ArtifactReader& reader, const CompressionPlan& plan, const OrderedJson& known_recipe,
                      const CalibrationSize& calibration, const std::string& output, const CompressionOptions& options);

// Errors: those of PlanCompression, ArtifactWriter and Checkpoint; kInvalidArgument for a recipe without the calibration data it needs;
// kDataLoss for weights that are not finite.
absl::StatusOr<CompressionReport> Compress(const ArtifactReader& reader, const Recipe& recipe, const std::string& output, ThreadPool& pool,
                                           const CompressionOptions& options);

}  // namespace pith
