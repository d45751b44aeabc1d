#include "quantization/formats/input_major.h"

#include <cmath>

#include "base/status.h"
#include "tensor/store_float.h"

namespace pith {

absl::Status CheckInputMajorScales(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape) {
  return CheckTensor(tensors, "scales", {DType::kF16, DType::kBF16, DType::kF32}, {shape.in / args.columns_per_scale(shape.in), shape.out},
                     absl::StrCat("(per ", StrategyName(args.strategy), ")"));
}

absl::StatusOr<QuantizedTensor> DecodeInputMajorScales(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape) {
  QuantizedTensor weight;
  weight.out = shape.out;
  weight.in = shape.in;
  weight.bits = args.num_bits;
  weight.group_size = args.columns_per_scale(shape.in);
  const TensorView& view = *tensors.Find("scales");
  weight.scale_dtype = view.dtype;
  std::vector<float> stored(static_cast<size_t>(view.num_elements()));
  RETURN_IF_ERROR(ConvertToFloat(view, absl::MakeSpan(stored)));
  const int64_t groups = weight.num_groups();
  weight.scale.resize(stored.size());
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t o = 0; o < shape.out; ++o) {
      const float scale = stored[g * shape.out + o];
      if (!std::isfinite(scale)) {
        return BadFileError(tensors.NameOf("scales"), ": expected finite scales, found ", scale, " at [", g, "][", o, "]");
      }
      weight.scale[o * groups + g] = scale;
    }
  }
  return weight;
}

absl::StatusOr<StoredTensor> EncodeInputMajorScales(const QuantizedTensor& weight, absl::string_view format) {
  RETURN_IF_ERROR(CheckScalesFit(weight, DType::kF16, format));
  const int64_t groups = weight.num_groups();
  StoredTensor stored{"scales", Tensor(DType::kF16, {groups, weight.out})};
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t o = 0; o < weight.out; ++o) StoreFloat(weight.scale[o * groups + g], g * weight.out + o, stored.tensor);
  }
  return stored;
}

const char* RefuseInputMajorStrategy(const QuantizationArgs& args) {
  const bool held = args.strategy == QuantizationStrategy::kGroup || args.strategy == QuantizationStrategy::kChannel;
  return held ? nullptr : "expected scales per group or channel, found one for the whole tensor";
}

}  // namespace pith
