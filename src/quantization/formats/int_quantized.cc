#include "quantization/formats/int_quantized.h"

#include "base/status.h"

namespace pith {
namespace {

constexpr absl::string_view kSuffixes[] = {"weight", "weight_scale", "weight_zero_point", "weight_g_idx"};

absl::StatusOr<MatrixShape> ReadShape(const ModuleTensors& tensors, const QuantizationArgs&) { return ReadCodeShape(tensors, DType::kI8); }

absl::Status Check(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape) {
  RETURN_IF_ERROR(CheckOnlyTensors(tensors, kSuffixes));
  RETURN_IF_ERROR(CheckMatrixShape(tensors.NameOf("weight"), args, shape));
  RETURN_IF_ERROR(CheckTensor(tensors, "weight", {DType::kI8}, {shape.out, shape.in}, ""));
  RETURN_IF_ERROR(CheckScale(tensors, args, shape));
  RETURN_IF_ERROR(CheckGroupIndex(tensors, args, shape));
  if (args.symmetric && tensors.Find("weight_zero_point") == nullptr) return absl::OkStatus();
  return CheckTensor(tensors, "weight_zero_point", {DType::kI8}, ScaleShape(args, shape),
                     absl::StrCat("(per ", StrategyName(args.strategy), ")"));
}

std::vector<StoredTensorSpec> Layout(const QuantizationArgs& args, MatrixShape shape, DType scale_dtype) {
  const Shape scales = ScaleShape(args, shape);
  std::vector<StoredTensorSpec> specs = {{"weight", DType::kI8, {shape.out, shape.in}}, {"weight_scale", scale_dtype, scales}};
  if (!args.symmetric) specs.push_back({"weight_zero_point", DType::kI8, scales});
  return specs;
}

absl::StatusOr<std::vector<StoredTensor>> Encode(const QuantizedTensor& weight, const QuantizationArgs& args) {
  RETURN_IF_ERROR(CheckEncodable(weight, args));
  const int offset = weight.default_zero_point();
  std::vector<StoredTensor> stored;
  stored.push_back({"weight", Tensor(DType::kI8, {weight.out, weight.in})});
  const absl::Span<int8_t> codes = stored[0].tensor.as<int8_t>();
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<int8_t>(weight.code[i] - offset);
  stored.push_back(EncodeScales(weight, args));
  if (args.symmetric) return stored;
  Tensor zero_point(DType::kI8, stored[1].tensor.shape());
  for (int64_t i = 0; i < zero_point.num_elements(); ++i) {
    zero_point.as<int8_t>()[i] = static_cast<int8_t>(ZeroPointAt(weight, i) - offset);
  }
  stored.push_back({"weight_zero_point", std::move(zero_point)});
  return stored;
}

absl::StatusOr<QuantizedTensor> Decode(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape) {
  RETURN_IF_ERROR(Check(tensors, args, shape));
  RETURN_IF_ERROR(CheckGroupIndexValues(tensors, args));
  ASSIGN_OR_RETURN(QuantizedTensor weight, DecodeScales(tensors, args, shape));
  const int offset = weight.default_zero_point();
  if (const TensorView* view = tensors.Find("weight_zero_point"); view != nullptr) {
    const auto read = [&](int64_t i) { return static_cast<int8_t>(view->data[i]) + offset; };
    RETURN_IF_ERROR(DecodeZeroPoints(tensors, args, read, weight));
  }
  const uint8_t* codes = tensors.Find("weight")->data;
  weight.code.resize(static_cast<size_t>(shape.out * shape.in));
  for (int64_t i = 0; i < shape.out * shape.in; ++i) {
    const int code = static_cast<int8_t>(codes[i]);
    if (code < args.min_code() || code > args.max_code()) {
      return BadFileError(tensors.NameOf("weight"), "[", i / shape.in, "][", i % shape.in, "]: expected a ", args.num_bits,
                          "-bit code in [", args.min_code(), ", ", args.max_code(), "], found ", code);
    }
    weight.code[static_cast<size_t>(i)] = static_cast<uint8_t>(code + offset);
  }
  weight.stored_bits_per_weight = StoredBitsPerWeight(tensors, kSuffixes, shape);
  return weight;
}

constexpr WeightFormat Row(absl::string_view name) {
  return {.name = name,
          .min_bits = 2,
          .max_bits = 8,
          .weight_suffix = "weight",
          .read_shape = ReadShape,
          .layout = Layout,
          .encode = Encode,
          .check = Check,
          .decode = Decode};
}

}  // namespace

const WeightFormat kIntQuantized = Row("int-quantized");
const WeightFormat kNaiveQuantized = Row("naive-quantized");

}  // namespace pith
