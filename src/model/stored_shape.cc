#include "model/stored_shape.h"

#include "base/status.h"

namespace pith {
namespace {

GemmScale ScaleOf(DType dtype) {
  return dtype == DType::kF16 ? GemmScale::kF16 : dtype == DType::kBF16 ? GemmScale::kBf16 : GemmScale::kF32;
}

}  // namespace

absl::StatusOr<WeightShape> StoredShape(const ArtifactReader& reader, const std::string& module) {
  ASSIGN_OR_RETURN(const TensorInfo info, reader.DescribeWeight(module));
  if (info.shape.size() != 2) return BadFileError(module, ".weight: expected a matrix, found ", ShapeName(info.shape));
  WeightShape shape{.out = info.shape[0], .in = info.shape[1]};
  if (info.quantized.has_value()) {
    shape.bits = info.quantized->bits;
    shape.type = info.quantized->type;
    shape.group_size = info.quantized->group_size;
    shape.has_zero_point = info.quantized->has_zero_point;
    shape.has_min = info.quantized->has_min;
    shape.input = info.quantized->input;
    shape.unit_size = info.quantized->unit_size;
    shape.scale = shape.unit_size > 0 ? GemmScale::kI8 : ScaleOf(info.quantized->scale);
  }
  return shape;
}

}  // namespace pith
