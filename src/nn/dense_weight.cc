#include "nn/dense_weight.h"

#include <atomic>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/float_types.h"
#include "base/status.h"

namespace pith {
namespace {

template <typename T> T LoadAt(const uint8_t* data, int64_t i) {
  T value;
  std::memcpy(&value, data + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

bfloat16 Round(float x) { return ToBfloat16(x); }
bfloat16 Round(float16 x) { return ToBfloat16(ToFloat(x)); }
bfloat16 Round(bfloat16 x) { return x; }

// Returns the first index of [begin, end) whose rounded value is not finite, or -1. Converts all of them.
template <typename T> int64_t ConvertRange(const uint8_t* data, int64_t begin, int64_t end, uint16_t* out) {
  int64_t bad = -1;
  for (int64_t i = begin; i < end; ++i) {
    out[i] = Round(LoadAt<T>(data, i)).bits;
    if ((out[i] & 0x7F80u) == 0x7F80u && bad < 0) bad = i;
  }
  return bad;
}

absl::Status NotFinite(absl::string_view name, float value, int64_t index, absl::Span<const int64_t> shape) {
  Shape position(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    position[d] = index % shape[d];
    index /= shape[d];
  }
  const absl::string_view found = std::isnan(value) ? "NaN" : value > 0 ? "infinity" : "-infinity";
  return BadFileError(name, ": expected finite values, found ", found, " at ", ShapeName(position));
}

}  // namespace

absl::Status ConvertToBfloat16(absl::string_view name, const TensorView& tensor, ThreadPool& pool, absl::Span<uint16_t> out) {
  CHECK_EQ(static_cast<int64_t>(out.size()), tensor.num_elements());
  int64_t (*convert)(const uint8_t*, int64_t, int64_t, uint16_t*) = nullptr;
  switch (tensor.dtype) {
    case DType::kF32: convert = ConvertRange<float>; break;
    case DType::kF16: convert = ConvertRange<float16>; break;
    case DType::kBF16: convert = ConvertRange<bfloat16>; break;
    default: return NotSupportedError(name, ": expected F32, F16 or BF16, found ", DTypeName(tensor.dtype));
  }
  std::atomic<int64_t> first_bad{tensor.num_elements()};
  pool.ParallelFor(tensor.num_elements(), 4096, [&](int64_t begin, int64_t end, int) {
    const int64_t bad = convert(tensor.data, begin, end, out.data());
    int64_t seen = first_bad.load();
    while (bad >= 0 && bad < seen && !first_bad.compare_exchange_weak(seen, bad)) {
    }
  });
  const int64_t bad = first_bad.load();
  if (bad == tensor.num_elements()) return absl::OkStatus();
  return NotFinite(name, ToFloat(bfloat16{out[bad]}), bad, tensor.shape);
}

absl::StatusOr<std::vector<float>> ReadVector(absl::string_view name, const TensorView& tensor, int64_t expected_size) {
  if (tensor.shape.size() != 1 || tensor.shape[0] != expected_size) {
    return BadFileError(name, ": expected [", expected_size, "], found ", ShapeName(tensor.shape));
  }
  if (tensor.dtype != DType::kF32 && tensor.dtype != DType::kF16 && tensor.dtype != DType::kBF16) {
    return NotSupportedError(name, ": expected F32, F16 or BF16, found ", DTypeName(tensor.dtype));
  }
  std::vector<float> values(expected_size);
  RETURN_IF_ERROR(ConvertToFloat(tensor, absl::MakeSpan(values)));
  for (int64_t i = 0; i < expected_size; ++i) {
    if (!std::isfinite(values[i])) return NotFinite(name, values[i], i, tensor.shape);
  }
  return values;
}

absl::Status CheckFinite(absl::string_view name, absl::Span<const float> values, int64_t columns) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    const int64_t rows = static_cast<int64_t>(values.size()) / columns;
    return NotFinite(name, values[i], static_cast<int64_t>(i), {rows, columns});
  }
  return absl::OkStatus();
}

}  // namespace pith
