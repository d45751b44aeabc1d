#include "compression/disk_need.h"

#include "base/status.h"
#include "compression/stage.h"

namespace pith {
namespace {

// Tokenizer, manifest, reports, headers.
constexpr int64_t kSideFileBytes = int64_t{64} << 20;

}  // namespace

DiskNeed ComputeDiskNeed(const CompressionPlan& plan, int64_t hidden_size, const CalibrationSize& calibration) {
  DiskNeed need{.artifact = plan.output_bytes + kSideFileBytes};
  for (const Stage& stage : SplitStages(plan)) {
    if (stage.layer < 0) continue;
    for (const PlannedModule* module : stage.modules) need.layers += TotalBytes(module->tensors);
    for (const TensorSpec* spec : stage.plain_tensors) need.layers += TotalBytes({*spec});
  }
  const int64_t floats = (calibration.tokens + calibration.measured_tokens) * hidden_size;
  need.hidden_states = 2 * floats * static_cast<int64_t>(sizeof(float));
  return need;
}

absl::Status CheckDiskNeed(const std::string& output, const DiskNeed& need, uint64_t free) {
  if (free >= static_cast<uint64_t>(need.total())) return absl::OkStatus();
  return IoError(Printable(output, 500), ": expected ", need.total(), " bytes of free disk space (artifact ", need.artifact,
                 ", layers kept until it is whole ", need.layers, ", hidden states of the calibration data ", need.hidden_states,
                 "), found ", free);
}

OrderedJson ToJson(const DiskNeed& need) {
  return {{"artifact", need.artifact}, {"layers", need.layers}, {"hidden_states", need.hidden_states}, {"total", need.total()}};
}

}  // namespace pith
