#include "quantization/formats/stored_tensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "absl/strings/str_join.h"
#include "base/status.h"
#include "tensor/store_float.h"

namespace pith {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian and read as they are");

constexpr DType kScaleDTypes[] = {DType::kBF16, DType::kF16, DType::kF32};

std::string DTypeNames(absl::Span<const DType> dtypes) {
  return absl::StrJoin(dtypes, " or ", [](std::string* out, DType dtype) { absl::StrAppend(out, DTypeName(dtype)); });
}

absl::string_view TypeName(QuantizationType type) { return type == QuantizationType::kInt ? "integer" : "float"; }

// The row of the stored scales that row `o` of the weight uses.
int64_t ScaleRow(const QuantizationArgs& args, int64_t o) {
  switch (args.strategy) {
    case QuantizationStrategy::kTensor: return 0;
    case QuantizationStrategy::kBlock: return o / args.block_rows;
    default: return o;
  }
}

// Rows that share a stored scale must agree on it.
absl::Status CheckSharedScales(const QuantizedTensor& weight, const QuantizationArgs& args) {
  const int64_t groups = weight.num_groups();
  const auto repeats_row_before = [&](const auto& values, int64_t o) {
    return values.empty() || std::equal(values.begin() + (o - 1) * groups, values.begin() + o * groups, values.begin() + o * groups);
  };
  for (int64_t o = 1; o < weight.out; ++o) {
    if (ScaleRow(args, o) != ScaleRow(args, o - 1)) continue;
    if (repeats_row_before(weight.scale, o) && repeats_row_before(weight.zero_point, o)) continue;
    return UsageError("weight: expected one scale and zero point (per ", StrategyName(args.strategy), "), found rows with others");
  }
  return absl::OkStatus();
}

}  // namespace

const TensorView* ModuleTensors::Find(absl::string_view suffix) const& {
  for (const StoredTensorView& tensor : tensors) {
    if (tensor.suffix == suffix) return &tensor.view;
  }
  return nullptr;
}

std::string ModuleTensors::NameOf(absl::string_view suffix) const { return absl::StrCat(module, ".", suffix); }

absl::Status CheckMatrixShape(absl::string_view name, const QuantizationArgs& args, MatrixShape shape) {
  if (shape.out < 1 || shape.in < 1 || shape.out > kMaxMatrixSide || shape.in > kMaxMatrixSide) {
    return BadFileError(name, ": expected a matrix with sides from 1 to ", kMaxMatrixSide, ", found [", shape.out, ", ", shape.in, "]");
  }
  if (args.strategy == QuantizationStrategy::kGroup && shape.in % args.group_size != 0) {
    return BadFileError(name, ": expected rows that the group size ", args.group_size, " divides, found in=", shape.in);
  }
  if (args.strategy == QuantizationStrategy::kBlock && shape.in % args.block_cols != 0) {
    return NotSupportedError(name, ": expected rows of whole blocks of ", args.block_cols, ", found in=", shape.in);
  }
  return absl::OkStatus();
}

absl::StatusOr<MatrixShape> ReadCodeShape(const ModuleTensors& tensors, DType dtype) {
  const TensorView* view = tensors.Find("weight");
  const std::string expected = absl::StrCat(tensors.NameOf("weight"), ": expected ", DTypeName(dtype), " [out, in], found ");
  if (view == nullptr) return BadFileError(expected, "no such tensor");
  if (view->dtype != dtype || view->shape.size() != 2) return BadFileError(expected, DTypeName(view->dtype), " ", ShapeName(view->shape));
  return MatrixShape{view->shape[0], view->shape[1]};
}

absl::Status CheckOnlyTensors(const ModuleTensors& tensors, absl::Span<const absl::string_view> expected) {
  for (const StoredTensorView& tensor : tensors.tensors) {
    if (std::find(expected.begin(), expected.end(), tensor.suffix) != expected.end()) continue;
    return BadFileError(tensors.NameOf(Printable(tensor.suffix)), ": expected only ", absl::StrJoin(expected, ", "),
                        " of this module, found this tensor too");
  }
  return absl::OkStatus();
}

absl::Status CheckTensor(const ModuleTensors& tensors, absl::string_view suffix, absl::Span<const DType> dtypes,
                         absl::Span<const int64_t> shape, absl::string_view note) {
  const TensorView* view = tensors.Find(suffix);
  const std::string expected = absl::StrCat(DTypeNames(dtypes), " ", ShapeName(shape), note.empty() ? "" : " ", note);
  if (view == nullptr) return BadFileError(tensors.NameOf(suffix), ": expected ", expected, ", found no such tensor");
  const bool dtype_fits = std::find(dtypes.begin(), dtypes.end(), view->dtype) != dtypes.end();
  if (dtype_fits && absl::Span<const int64_t>(view->shape) == shape) return absl::OkStatus();
  return BadFileError(tensors.NameOf(suffix), ": expected ", expected, ", found ", DTypeName(view->dtype), " ", ShapeName(view->shape));
}

Shape ScaleShape(const QuantizationArgs& args, MatrixShape shape) {
  if (args.strategy == QuantizationStrategy::kTensor) return {1};
  const int64_t rows = args.strategy == QuantizationStrategy::kBlock ? (shape.out + args.block_rows - 1) / args.block_rows : shape.out;
  return {rows, shape.in / args.columns_per_scale(shape.in)};
}

absl::Status CheckScale(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape, absl::string_view suffix) {
  return CheckTensor(tensors, suffix, kScaleDTypes, ScaleShape(args, shape), absl::StrCat("(per ", StrategyName(args.strategy), ")"));
}

absl::Status CheckGroupIndex(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape) {
  if (tensors.Find("weight_g_idx") == nullptr) return absl::OkStatus();
  if (args.strategy != QuantizationStrategy::kGroup) {
    return BadFileError(tensors.NameOf("weight_g_idx"), ": expected none for strategy ", StrategyName(args.strategy), ", found one");
  }
  return CheckTensor(tensors, "weight_g_idx", {DType::kI32}, {shape.in}, "");
}

absl::Status CheckGroupIndexValues(const ModuleTensors& tensors, const QuantizationArgs& args) {
  const TensorView* view = tensors.Find("weight_g_idx");
  if (view == nullptr) return absl::OkStatus();
  for (int64_t i = 0; i < view->num_elements(); ++i) {
    int32_t group;
    std::memcpy(&group, view->data + i * 4, 4);
    if (group == i / args.group_size) continue;
    return NotSupportedError(tensors.NameOf("weight_g_idx"), "[", i, "]: expected ", i / args.group_size,
                             " (groups of neighbouring columns), found ", group, "; permuted groups are not supported");
  }
  return absl::OkStatus();
}

absl::StatusOr<QuantizedTensor> DecodeScales(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape,
                                             absl::string_view suffix) {
  QuantizedTensor weight;
  weight.out = shape.out;
  weight.in = shape.in;
  weight.bits = args.num_bits;
  weight.type = args.type;
  weight.group_size = args.columns_per_scale(shape.in);
  const TensorView& view = *tensors.Find(suffix);
  weight.scale_dtype = view.dtype;
  std::vector<float> stored(static_cast<size_t>(view.num_elements()));
  RETURN_IF_ERROR(ConvertToFloat(view, absl::MakeSpan(stored)));
  for (size_t i = 0; i < stored.size(); ++i) {
    if (std::isfinite(stored[i])) continue;
    return BadFileError(tensors.NameOf(suffix), ": expected finite scales, found ", stored[i], " at index ", i);
  }
  const int64_t groups = weight.num_groups();
  weight.scale.reserve(static_cast<size_t>(shape.out * groups));
  for (int64_t o = 0; o < shape.out; ++o) {
    const auto row = stored.begin() + ScaleRow(args, o) * groups;
    weight.scale.insert(weight.scale.end(), row, row + groups);
  }
  return weight;
}

absl::Status DecodeZeroPoints(const ModuleTensors& tensors, const QuantizationArgs& args, absl::FunctionRef<int(int64_t)> read,
                              QuantizedTensor& weight) {
  const int64_t count = args.strategy == QuantizationStrategy::kTensor ? 1 : weight.out * weight.num_groups();
  std::vector<uint8_t> zero_point(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int value = read(i);
    const bool fits = args.symmetric ? value == weight.default_zero_point() : value >= 0 && value < (1 << args.num_bits);
    if (!fits) {
      return BadFileError(
          tensors.NameOf("weight_zero_point"), ": expected ",
          args.symmetric ? "zeros in a symmetric weight" : absl::StrCat("values in [", args.min_code(), ", ", args.max_code(), "]"),
          ", found ", value - weight.default_zero_point(), " at index ", i);
    }
    zero_point[static_cast<size_t>(i)] = static_cast<uint8_t>(value);
  }
  if (args.symmetric) return absl::OkStatus();
  if (args.strategy == QuantizationStrategy::kTensor) zero_point.resize(static_cast<size_t>(weight.out), zero_point[0]);
  weight.zero_point = std::move(zero_point);
  return absl::OkStatus();
}

absl::Status CheckEncodable(const QuantizedTensor& weight, const QuantizationArgs& args) {
  RETURN_IF_ERROR(Validate(args));
  if (weight.type != args.type) {
    return UsageError("weight: expected ", TypeName(args.type), " codes, found ", TypeName(weight.type), " codes");
  }
  if (weight.bits != args.num_bits) return UsageError("weight: expected ", args.num_bits, "-bit codes, found ", weight.bits, "-bit codes");
  if (!weight.min.empty()) return UsageError("weight: expected zero points, found minimums (", weight.format, "): quantize it again first");
  const int64_t group_size = args.columns_per_scale(weight.in);
  if (weight.group_size != group_size) {
    return UsageError("weight: expected groups of ", group_size, " (per ", StrategyName(args.strategy), "), found ", weight.group_size);
  }
  if (args.symmetric != weight.zero_point.empty()) {
    return UsageError("weight: expected ", args.symmetric ? "no zero points (symmetric)" : "zero points (asymmetric)", ", found ",
                      weight.zero_point.empty() ? "none" : "some");
  }
  return CheckSharedScales(weight, args);
}

StoredTensor EncodeScales(const QuantizedTensor& weight, const QuantizationArgs& args) {
  StoredTensor stored{"weight_scale", Tensor(weight.scale_dtype, ScaleShape(args, {weight.out, weight.in}))};
  const int64_t groups = weight.num_groups(), rows_per_scale = args.strategy == QuantizationStrategy::kBlock ? args.block_rows : 1;
  for (int64_t i = 0; i < stored.tensor.num_elements(); ++i) {
    StoreFloat(weight.scale[static_cast<size_t>(i / groups * rows_per_scale * groups + i % groups)], i, stored.tensor);
  }
  return stored;
}

absl::Status CheckScalesFit(const QuantizedTensor& weight, DType dtype, absl::string_view format) {
  if (dtype == DType::kF32 || dtype == weight.scale_dtype) return absl::OkStatus();
  for (size_t i = 0; i < weight.scale.size(); ++i) {
    const float scale = weight.scale[i];
    const float rounded = dtype == DType::kF16 ? ToFloat(ToFloat16(scale)) : RoundToBfloat16(scale);
    if (rounded == scale) continue;
    const int64_t index = static_cast<int64_t>(i), groups = weight.num_groups();
    return NotSupportedError("weight format ", format, ": expected scales that ", DTypeName(dtype), " holds exactly, found ", scale,
                             " in row ", index / groups, ", group ", index % groups);
  }
  return absl::OkStatus();
}

uint8_t ZeroPointAt(const QuantizedTensor& weight, int64_t index) { return weight.zero_point[static_cast<size_t>(index)]; }

double StoredBitsPerWeight(const ModuleTensors& tensors, absl::Span<const absl::string_view> suffixes, MatrixShape shape) {
  int64_t bytes = 0;
  for (const absl::string_view suffix : suffixes) {
    const TensorView* view = tensors.Find(suffix);
    if (view != nullptr) bytes += view->num_bytes();
  }
  return static_cast<double>(bytes) * 8 / (static_cast<double>(shape.out) * static_cast<double>(shape.in));
}

}  // namespace pith
