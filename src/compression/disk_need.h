// How much disk a run takes beside its input, known from its plan: at the end the artifact and the layers that are kept until it is whole
// lie side by side, with the hidden states of the calibration data before and behind the layer at work.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "base/json.h"
#include "compression/compression_plan.h"

namespace pith {

// Tokens of calibration data: of all sequences, and of those that errors are measured on.
struct CalibrationSize {
  int64_t tokens = 0, measured_tokens = 0;
};

// In bytes.
struct DiskNeed {
  int64_t artifact = 0;       // with room for side files
  int64_t layers = 0;         // of OUTPUT.unfinished
  int64_t hidden_states = 0;  // there too
  int64_t total() const { return artifact + layers + hidden_states; }
};

DiskNeed ComputeDiskNeed(const CompressionPlan& plan, int64_t hidden_size, const CalibrationSize& calibration);

// `free`: bytes that can be written, those of an unfinished run's files included. Errors: kAborted with all of these numbers.
absl::Status CheckDiskNeed(const std::string& output, const DiskNeed& need, uint64_t free);

OrderedJson ToJson(const DiskNeed& need);

}  // namespace pith
