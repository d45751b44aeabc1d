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

namespace pith {

// Bytes on disk, in memory, and per token of context. Forecast: from shapes and schemes; actual: counted.
struct MemoryReport {
  int64_t file_bytes = 0;                                     // all tensor bytes in the files
  int64_t resident_weight_bytes = 0;                          // prepacked
  int64_t bf16_weight_bytes = 0;                              // the same tensors in bf16, for comparison
  std::array<int64_t, kNumKvDtypes> kv_bytes_per_token = {};  // by KvDtype
  int64_t max_position_embeddings = 0;
};

absl::StatusOr<MemoryReport> MakeMemoryReport(const ArtifactReader& reader, const DecoderModel& model);

// One line per kind of tensor that shares a path ("30 x layers.*.mlp.down_proj"), or per tensor when `all`.
std::string DataPathTable(absl::Span<const TensorDataPath> paths, bool all);
std::string MemoryTable(const MemoryReport& report);
OrderedJson ToJson(const TensorDataPath& path);
OrderedJson ToJson(const MemoryReport& report);

}  // namespace pith
