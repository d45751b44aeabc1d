// The declared data path and the memory report, as text and JSON: what `inspect` shows and `quantize` prints after writing.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "artifact/artifact_reader.h"
#include "base/json.h"
#include "kernels/attention.h"
#include "model/decoder_model.h"
#include "model/memory_forecast.h"

namespace pith {

// Bytes on disk, in memory, and per token of context.
struct MemoryReport {
  int64_t file_bytes = 0;         // all tensor bytes in the files
  int64_t bf16_weight_bytes = 0;  // the resident matrices in bf16, for comparison
  WeightBytes stored;             // in the files, by part
  WeightBytes forecast;           // resident, from shapes and formats alone
  WeightBytes resident;           // resident, counted over the buffers of the loaded model
  int64_t process_bytes = 0;      // measured: growth of the process's anonymous memory while the weights were loaded; 0 if unknown
  std::array<int64_t, kNumKvDtypes> kv_bytes_per_token = {};  // by KvDtype
  int64_t max_position_embeddings = 0;
  int64_t workspace_rows = 0, workspace_bytes = 0;  // buffers of the last pass of a prompt as long as the context
};

// forecast and process_bytes are the caller's to fill in: they need the time before the load. `context`: what the model was loaded with.
absl::StatusOr<MemoryReport> MakeMemoryReport(const ArtifactReader& reader, const DecoderModel& model, const ComputeContext& context);

// One line per kind of tensor that shares a path ("30 x layers.*.mlp.down_proj"), or per tensor when `all`.
std::string DataPathTable(absl::Span<const TensorDataPath> paths, bool all);
std::string MemoryTable(const MemoryReport& report);
OrderedJson ToJson(const TensorDataPath& path);
OrderedJson ToJson(const MemoryReport& report);

}  // namespace pith
