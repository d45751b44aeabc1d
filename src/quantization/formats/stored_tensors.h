// The tensors of one module as they lie in a file, and what all formats of compressed-tensors share: scales, zero points, checks.
// All functions are pure and thread-safe. Data needs no alignment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "quantization/quantization_args.h"
#include "quantization/quantized_tensor.h"
#include "tensor/tensor.h"

namespace pith {

// One tensor to be written: `<module>.<suffix>`.
struct StoredTensor {
  std::string suffix;  // "weight_packed"
  Tensor tensor;
};

// One tensor as found in a file; borrowed.
struct StoredTensorView {
  std::string suffix;  // the tensor's name without "<module>."
  TensorView view;
};

// What a file holds for one module, its bias left out. `module` is only used in messages.
struct ModuleTensors {
  std::string module;  // "model.layers.3.mlp.down_proj"
  std::vector<StoredTensorView> tensors;

  // nullptr when absent; points into `tensors`.
  const TensorView* Find(absl::string_view suffix) const&;
  const TensorView* Find(absl::string_view suffix) const&& = delete;
  std::string NameOf(absl::string_view suffix) const;  // "model.layers.3.mlp.down_proj.weight_scale"
};

struct MatrixShape {
  int64_t out = 0, in = 0;
};

// A tensor that will be written: what EncodeWeight gives, without the data.
struct StoredTensorSpec {
  std::string suffix;
  DType dtype = DType::kI32;
  Shape shape;
};

inline constexpr int64_t kMaxMatrixSide = int64_t{1} << 31;

// A weight matrix has sides in [1, kMaxMatrixSide] and, per group, a row length that the group size divides.
// `name` is that of the tensor the shape comes from. Errors: kDataLoss; kUnimplemented for rows that end within a block.
absl::Status CheckMatrixShape(absl::string_view name, const QuantizationArgs& args, MatrixShape shape);

// Shape of a weight stored as one code per element in a tensor "weight" of `dtype`. Errors: kDataLoss.
absl::StatusOr<MatrixShape> ReadCodeShape(const ModuleTensors& tensors, DType dtype);

// Every tensor's suffix is among `expected`. Errors: kDataLoss naming the first that is not.
absl::Status CheckOnlyTensors(const ModuleTensors& tensors, absl::Span<const absl::string_view> expected);

// The tensor is there with one of the dtypes and that shape. `note` explains the shape in the message, e.g. "(4-bit, in=11008)".
// Errors: kDataLoss.
absl::Status CheckTensor(const ModuleTensors& tensors, absl::string_view suffix, absl::Span<const DType> dtypes,
                         absl::Span<const int64_t> shape, absl::string_view note);

// Shape of weight_scale: [out, in / group_size], [out, 1], [1], or per block [ceil(out / block_rows), in / block_cols].
Shape ScaleShape(const QuantizationArgs& args, MatrixShape shape);
// `suffix` here and below: the tensor that holds the scales.
absl::Status CheckScale(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape,
                        absl::string_view suffix = "weight_scale");

// weight_g_idx, where present: I32 [in]. The second function reads it: kUnimplemented unless entry i is i / group_size.
absl::Status CheckGroupIndex(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape);
absl::Status CheckGroupIndexValues(const ModuleTensors& tensors, const QuantizationArgs& args);

// A QuantizedTensor with its type, shape, grouping and scales filled in (scales of tensors and blocks repeated per row). The tensors are
// checked.
// Errors: kDataLoss for a scale that is not finite.
absl::StatusOr<QuantizedTensor> DecodeScales(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape,
                                             absl::string_view suffix = "weight_scale");

// Fills in zero points from `read(index)`, a stored value (signed zero point + 2^(b-1)) by its index in the scale's shape.
// Errors: kDataLoss for one outside the bit range, or other than 2^(b-1) in a symmetric weight.
absl::Status DecodeZeroPoints(const ModuleTensors& tensors, const QuantizationArgs& args, absl::FunctionRef<int(int64_t)> read,
                              QuantizedTensor& weight);

// Whether a weight can be stored as `args` say. Errors: kInvalidArgument naming what differs.
absl::Status CheckEncodable(const QuantizedTensor& weight, const QuantizationArgs& args);

// weight_scale in weight.scale_dtype. `weight` has passed CheckEncodable.
StoredTensor EncodeScales(const QuantizedTensor& weight, const QuantizationArgs& args);

// Whether `dtype` holds every scale of the weight exactly. Errors: kUnimplemented naming the format, the first that it does not, and where.
absl::Status CheckScalesFit(const QuantizedTensor& weight, DType dtype, absl::string_view format);

// Zero point (as stored in `weight`) by its index in the scale's shape.
uint8_t ZeroPointAt(const QuantizedTensor& weight, int64_t index);

// Bytes of the named tensors * 8 / weights.
double StoredBitsPerWeight(const ModuleTensors& tensors, absl::Span<const absl::string_view> suffixes, MatrixShape shape);

}  // namespace pith
