#include "compression/finite_check.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/status.h"

namespace pith {
namespace {

constexpr int64_t kChunk = 1 << 16;

// The position of the first value that is not finite, or -1.
int64_t FindNonFinite(absl::Span<const float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) return static_cast<int64_t>(i);
  }
  return -1;
}

}  // namespace

absl::Status CheckFinite(const ArtifactReader& reader, const std::string& module) {
  ASSIGN_OR_RETURN(const Weight weight, reader.ReadWeight(module));
  if (!weight.dense.has_value()) return BadFileError(module, ": expected a dense weight, found a quantized one");
  const TensorView& dense = *weight.dense;
  const int64_t count = dense.num_elements();
  std::vector<float> values(static_cast<size_t>(std::min(count, kChunk)));
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    const int64_t size = std::min(kChunk, count - begin);
    const absl::Span<float> chunk = absl::MakeSpan(values).first(static_cast<size_t>(size));
    RETURN_IF_ERROR(ConvertToFloat({dense.dtype, {size}, dense.data + begin * ByteSize(dense.dtype)}, chunk));
    if (const int64_t index = FindNonFinite(chunk); index >= 0) {
      return BadFileError(reader.path(), ": ", module, ".weight: expected finite values, found ", chunk[static_cast<size_t>(index)],
                          " at index ", begin + index);
    }
  }
  return absl::OkStatus();
}

}  // namespace pith
