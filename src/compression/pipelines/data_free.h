// The pipeline of methods that look at weights only: every module once, in model order, one weight in memory at a time.
#pragma once

#include "absl/status/status.h"
#include "artifact/artifact_reader.h"
#include "artifact/artifact_writer.h"
#include "base/thread_pool.h"
#include "compression/modifier.h"
#include "compression/session.h"

namespace pith {

// Quantizes the plan's quantized modules with `modifier`, copies the others, and adds their reports. Errors: those of the modifier and the
// writer; kInternal when the modifier wants calibration data.
absl::Status RunDataFreePipeline(const ArtifactReader& reader, const CompressionPlan& plan, Modifier& modifier, ArtifactWriter& writer,
                                 ThreadPool& pool, const CompressionOptions& options, CompressionReport& report);

}  // namespace pith
