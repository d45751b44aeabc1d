// Flags of commands that run a model over calibration data, and the data they ask for.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"
#include "base/thread_pool.h"
#include "cli/model_bundle.h"
#include "cli/phase_progress.h"
#include "compression/calibration_data.h"
#include "compression/model_text.h"

namespace CLI {
class App;
}

namespace pith {

// --calibration, --num-samples, --sequence-length. `use`: what the texts are for, and what stands in for them.
void AddCalibrationFlags(CLI::App& app, std::vector<std::string>& paths, CalibrationOptions& samples, const std::string& use);

// What calibration needs of a model's tokenizer and template; borrows them.
ModelText ModelTextOf(const ModelBundle& bundle);

// Samples of the files, or of the model's own text where there are none. `model`: as the user named it; `reader`: the same, open. Errors:
// those of LoadModelFiles, LoadCalibrationData and SampleCalibrationData.
absl::StatusOr<CalibrationData> MakeCalibrationData(const std::string& model, const std::vector<std::string>& paths,
                                                    const CalibrationOptions& samples, const ArtifactReader& reader, ThreadPool& pool,
                                                    PhaseProgress& progress);

// One line: how many samples, from where, tokens by domain.
std::string DescribeCalibration(const CalibrationData& data);

}  // namespace pith
