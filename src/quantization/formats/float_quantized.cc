#include "quantization/formats/float_quantized.h"

#include <cstring>

#include "base/status.h"

namespace pith {
namespace {

constexpr absl::string_view kSuffixes[] = {"weight", "weight_scale"};

absl::StatusOr<MatrixShape> ReadShape(const ModuleTensors& tensors, const QuantizationArgs&) {
  return ReadCodeShape(tensors, DType::kF8E4M3);
}

absl::Status Check(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape) {
  RETURN_IF_ERROR(CheckOnlyTensors(tensors, kSuffixes));
  RETURN_IF_ERROR(CheckMatrixShape(tensors.NameOf("weight"), args, shape));
  RETURN_IF_ERROR(CheckTensor(tensors, "weight", {DType::kF8E4M3}, {shape.out, shape.in}, ""));
  return CheckScale(tensors, args, shape);
}

std::vector<StoredTensorSpec> Layout(const QuantizationArgs& args, MatrixShape shape, DType scale_dtype) {
  return {{"weight", DType::kF8E4M3, {shape.out, shape.in}}, {"weight_scale", scale_dtype, ScaleShape(args, shape)}};
}

absl::StatusOr<std::vector<StoredTensor>> Encode(const QuantizedTensor& weight, const QuantizationArgs& args) {
  RETURN_IF_ERROR(CheckEncodable(weight, args));
  std::vector<StoredTensor> stored;
  stored.push_back({"weight", Tensor(DType::kF8E4M3, {weight.out, weight.in})});
  std::memcpy(stored[0].tensor.data(), weight.code.data(), weight.code.size());
  stored.push_back(EncodeScales(weight, args));
  return stored;
}

absl::StatusOr<QuantizedTensor> Decode(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape) {
  RETURN_IF_ERROR(Check(tensors, args, shape));
  ASSIGN_OR_RETURN(QuantizedTensor weight, DecodeScales(tensors, args, shape));
  RETURN_IF_ERROR(DecodeFloatCodes(tensors, weight));
  weight.stored_bits_per_weight = StoredBitsPerWeight(tensors, kSuffixes, shape);
  return weight;
}

constexpr WeightFormat Row(absl::string_view name) {
  return {.name = name,
          .type = QuantizationType::kFloat,
          .min_bits = 8,
          .max_bits = 8,
          .weight_suffix = "weight",
          .read_shape = ReadShape,
          .layout = Layout,
          .encode = Encode,
          .check = Check,
          .decode = Decode};
}

}  // namespace

absl::Status DecodeFloatCodes(const ModuleTensors& tensors, QuantizedTensor& weight) {
  const uint8_t* codes = tensors.Find("weight")->data;
  weight.code.assign(codes, codes + weight.out * weight.in);
  for (size_t i = 0; i < weight.code.size(); ++i) {
    if ((weight.code[i] & 0x7F) != 0x7F) continue;  // the only NaN of either sign
    const int64_t index = static_cast<int64_t>(i);
    return BadFileError(tensors.NameOf("weight"), "[", index / weight.in, "][", index % weight.in, "]: expected a number, found NaN");
  }
  return absl::OkStatus();
}

const WeightFormat kFloatQuantized = Row("float-quantized");
const WeightFormat kNaiveFloatQuantized = Row("naive-quantized");

}  // namespace pith
