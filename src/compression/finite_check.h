// Looks for weights that are no numbers before any work is done on them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "artifact/artifact_reader.h"

namespace pith {

// Every element of a module's dense weight, a few thousand at a time. Errors: those of ReadWeight; kDataLoss naming tensor and index of the
// first that is NaN or infinite.
absl::Status CheckFinite(const ArtifactReader& reader, const std::string& module);

}  // namespace pith
