#include "tensor/tensor.h"

#include <type_traits>

#include "absl/strings/str_join.h"
#include "base/status.h"

namespace pith {

int64_t NumElements(absl::Span<const int64_t> shape) {
  int64_t n = 1;
  for (const int64_t dim : shape) n *= dim;
  return n;
}

std::string ShapeName(absl::Span<const int64_t> shape) { return absl::StrCat("[", absl::StrJoin(shape, ", "), "]"); }

absl::StatusOr<int64_t> CheckedNumElements(absl::Span<const int64_t> shape) {
  int64_t n = 1;
  bool zero = false;
  for (const int64_t dim : shape) {
    if (dim < 0) return BadFileError("shape ", ShapeName(shape), ": expected dimensions of at least 0");
    if (dim == 0) zero = true;
  }
  if (zero) return 0;
  for (const int64_t dim : shape) {
    if (n > (int64_t{1} << 62) / dim) return BadFileError("shape ", ShapeName(shape), ": expected fewer than 2^62 elements");
    n *= dim;
  }
  return n;
}

namespace {

template <typename T> void Convert(const TensorView& in, absl::Span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, in.data + i * sizeof(T), sizeof(T));
    if constexpr (std::is_arithmetic_v<T>) {
      out[i] = static_cast<float>(value);
    } else {
      out[i] = ToFloat(value);
    }
  }
}

}  // namespace

absl::Status ConvertToFloat(const TensorView& in, absl::Span<float> out) {
  CHECK_EQ(static_cast<int64_t>(out.size()), in.num_elements());
  switch (in.dtype) {
    case DType::kF32: Convert<float>(in, out); break;
    case DType::kF64: Convert<double>(in, out); break;
    case DType::kF16: Convert<float16>(in, out); break;
    case DType::kBF16: Convert<bfloat16>(in, out); break;
    case DType::kF8E4M3: Convert<float8_e4m3fn>(in, out); break;
    case DType::kI8: Convert<int8_t>(in, out); break;
    case DType::kU8: Convert<uint8_t>(in, out); break;
    case DType::kI16: Convert<int16_t>(in, out); break;
    case DType::kU16: Convert<uint16_t>(in, out); break;
    case DType::kI32: Convert<int32_t>(in, out); break;
    case DType::kU32: Convert<uint32_t>(in, out); break;
    case DType::kI64: Convert<int64_t>(in, out); break;
    case DType::kU64: Convert<uint64_t>(in, out); break;
    default: return NotSupportedError("conversion of ", DTypeName(in.dtype), " to F32");
  }
  return absl::OkStatus();
}

}  // namespace pith
