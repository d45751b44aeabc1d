// Shapes, borrowed views and owned tensors: row-major, contiguous, last dimension fastest.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/aligned_buffer.h"
#include "base/check.h"
#include "base/float_types.h"
#include "tensor/dtype.h"

namespace pith {

using Shape = absl::InlinedVector<int64_t, 4>;

// Product of the dimensions; 1 for rank 0. Dimensions are >= 0 and the product is known to fit (checked where shapes are read).
int64_t NumElements(absl::Span<const int64_t> shape);
// "[4096, 1376]"
std::string ShapeName(absl::Span<const int64_t> shape);
// Product with overflow check. Errors: kDataLoss for a negative dimension or a product over 2^62.
absl::StatusOr<int64_t> CheckedNumElements(absl::Span<const int64_t> shape);

// The DType of a C++ element type.
template <typename T> struct DTypeOf;
template <> struct DTypeOf<float> { static constexpr DType value = DType::kF32; };
template <> struct DTypeOf<double> { static constexpr DType value = DType::kF64; };
template <> struct DTypeOf<bfloat16> { static constexpr DType value = DType::kBF16; };
template <> struct DTypeOf<float16> { static constexpr DType value = DType::kF16; };
template <> struct DTypeOf<float8_e4m3fn> { static constexpr DType value = DType::kF8E4M3; };
template <> struct DTypeOf<int8_t> { static constexpr DType value = DType::kI8; };
template <> struct DTypeOf<uint8_t> { static constexpr DType value = DType::kU8; };
template <> struct DTypeOf<int16_t> { static constexpr DType value = DType::kI16; };
template <> struct DTypeOf<uint16_t> { static constexpr DType value = DType::kU16; };
template <> struct DTypeOf<int32_t> { static constexpr DType value = DType::kI32; };
template <> struct DTypeOf<uint32_t> { static constexpr DType value = DType::kU32; };
template <> struct DTypeOf<int64_t> { static constexpr DType value = DType::kI64; };

// A borrowed read-only tensor; whoever made it says how long the bytes live (usually: as long as the artifact reader).
struct TensorView {
  DType dtype = DType::kF32;
  Shape shape;
  const uint8_t* data = nullptr;

  int64_t num_elements() const { return NumElements(shape); }
  int64_t num_bytes() const { return num_elements() * ByteSize(dtype); }
  absl::Span<const uint8_t> bytes() const { return {data, static_cast<size_t>(num_bytes())}; }
  // Elements as T, which must match dtype. The data must be aligned for T.
  template <typename T> absl::Span<const T> as() const {
    CHECK(DTypeOf<T>::value == dtype);
    DCHECK(reinterpret_cast<uintptr_t>(data) % alignof(T) == 0);
    return {reinterpret_cast<const T*>(data), static_cast<size_t>(num_elements())};
  }
};

// An owned tensor, zeroed when made. Move-only.
class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, absl::Span<const int64_t> shape)
      : dtype_(dtype), shape_(shape.begin(), shape.end()), buffer_(static_cast<size_t>(NumElements(shape) * ByteSize(dtype))) {}
  Tensor(DType dtype, std::initializer_list<int64_t> shape) : Tensor(dtype, absl::MakeConstSpan(shape.begin(), shape.size())) {}

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t num_elements() const { return NumElements(shape_); }
  uint8_t* data() { return buffer_.data(); }
  const uint8_t* data() const { return buffer_.data(); }
  template <typename T> absl::Span<T> as() {
    CHECK(DTypeOf<T>::value == dtype_);
    return {reinterpret_cast<T*>(buffer_.data()), static_cast<size_t>(num_elements())};
  }
  template <typename T> absl::Span<const T> as() const { return view().as<T>(); }
  TensorView view() const { return {dtype_, shape_, buffer_.data()}; }

 private:
  DType dtype_ = DType::kF32;
  Shape shape_;
  AlignedBuffer buffer_;
};

// A borrowed row-major matrix [rows, cols] with a row stride in elements.
template <typename T> struct MatrixView {
  T* data = nullptr;
  int64_t rows = 0, cols = 0, stride = 0;

  MatrixView() = default;
  MatrixView(T* data, int64_t rows, int64_t cols) : MatrixView(data, rows, cols, cols) {}
  MatrixView(T* data, int64_t rows, int64_t cols, int64_t stride) : data(data), rows(rows), cols(cols), stride(stride) {}
  T* row(int64_t r) const {
    DCHECK(r >= 0 && r < rows);
    return data + r * stride;
  }
};

// Copies any floating-point (F64, F32, F16, BF16, F8_E4M3) or integer view to f32. `out` has num_elements() floats.
// Errors: kUnimplemented for a dtype without a numeric meaning here (BOOL, F8_E5M2).
absl::Status ConvertToFloat(const TensorView& in, absl::Span<float> out);

}  // namespace pith
