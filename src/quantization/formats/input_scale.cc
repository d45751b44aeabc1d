#include "quantization/formats/input_scale.h"

#include <cmath>

#include "base/status.h"
#include "quantization/qparams.h"
#include "tensor/store_float.h"

namespace pith {
namespace {

constexpr absl::string_view kScale = kInputScaleSuffix, kZeroPoint = "input_zero_point";

absl::Status CheckZeroPoint(const ModuleTensors& tensors) {
  const TensorView* view = tensors.Find(kZeroPoint);
  if (view == nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(CheckTensor(tensors, kZeroPoint, {view->dtype}, {1}, ""));
  float value = 0;
  RETURN_IF_ERROR(Annotate(ConvertToFloat(*view, {&value, 1}), tensors.NameOf(kZeroPoint)));
  if (value == 0) return absl::OkStatus();
  return NotSupportedError(tensors.NameOf(kZeroPoint), ": expected 0 (symmetric activations), found ", value);
}

}  // namespace

std::pair<ModuleTensors, ModuleTensors> SplitInputTensors(const ModuleTensors& tensors) {
  std::pair<ModuleTensors, ModuleTensors> parts{{tensors.module, {}}, {tensors.module, {}}};
  for (const StoredTensorView& tensor : tensors.tensors) {
    const bool of_input = tensor.suffix == kScale || tensor.suffix == kZeroPoint;
    (of_input ? parts.second : parts.first).tensors.push_back(tensor);
  }
  return parts;
}

absl::StatusOr<std::optional<InputQuantization>> ReadInputQuantization(const ModuleTensors& tensors,
                                                                       const std::optional<QuantizationArgs>& input) {
  if (!input.has_value() || input->dynamic) {
    for (const absl::string_view suffix : {kScale, kZeroPoint}) {
      if (tensors.Find(suffix) == nullptr) continue;
      return BadFileError(tensors.NameOf(suffix), ": expected none, since config.json ",
                          input.has_value() ? "has scales of activations made at run time" : "leaves activations unquantized",
                          ", found one");
    }
    if (!input.has_value()) return std::optional<InputQuantization>();
    return std::optional<InputQuantization>(InputQuantization{.args = *input});
  }
  RETURN_IF_ERROR(CheckTensor(tensors, kScale, {DType::kBF16, DType::kF16, DType::kF32}, {1}, "(static activations)"));
  RETURN_IF_ERROR(CheckZeroPoint(tensors));
  InputQuantization quantization{.args = *input};
  RETURN_IF_ERROR(ConvertToFloat(*tensors.Find(kScale), {&quantization.static_scale, 1}));
  if (!std::isfinite(quantization.static_scale) || quantization.static_scale <= 0) {
    return BadFileError(tensors.NameOf(kScale), ": expected a finite positive scale, found ", quantization.static_scale);
  }
  return std::optional<InputQuantization>(quantization);
}

float StaticInputScale(const QuantizationArgs& args, float max_abs, DType dtype) {
  if (max_abs == 0) return 1.0f;
  const float largest_code = args.type == QuantizationType::kFloat ? 448.0f : static_cast<float>(args.max_code());
  const float scale = RoundToDType(max_abs / largest_code, dtype);
  return scale > 0 ? scale : 1.0f;  // below the smallest number of the dtype
}

StoredTensor EncodeInputScale(float scale, DType dtype) {
  StoredTensor stored{.suffix = std::string(kScale), .tensor = Tensor(dtype, {1})};
  StoreFloat(scale, 0, stored.tensor);
  return stored;
}

}  // namespace pith
