// What a run will take of this machine, beforehand: time and memory of the run's own code on a small part of the work.
//
// The heaviest decoder layer goes through the pipeline with a few of the calibration sequences; what it does per token, and what it does
// once whatever the data (searches, factors, codes, files), are timed apart and multiplied by the tokens and layers there are. Weights are
// checked and hashed, and embedding and head quantized, in part as well. Memory is the most the probe held, with what more sequences add:
// AnonymousMemory, so without the pages of the model's files. No constant of any machine or method is in it. It takes about as much memory
// as the run, and as much time as one layer of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"
#include "base/thread_pool.h"
#include "compression/calibration_data.h"
#include "compression/compression_plan.h"
#include "compression/compression_report.h"
#include "compression/recipe.h"

namespace pith {

// "checking" and "quantizing", as Compress will report them. `calibration`: the data of the run, or random ids of the same lengths; null:
// none. Files of the probe lie beside `output` and are deleted. `progress` (done, total steps) may end the work; it may be empty.
// Errors: those of Compress.
absl::StatusOr<std::vector<PhaseUse>> EstimateCompression(const ArtifactReader& reader, const Recipe& recipe, const CompressionPlan& plan,
                                                          const CalibrationData* calibration, const std::string& output, ThreadPool& pool,
                                                          const std::function<absl::Status(int64_t, int64_t)>& progress);

}  // namespace pith
