#include "nn/weight_shape.h"

namespace pith {
namespace {

bool CanShareMatrix(const WeightShape& a, const WeightShape& b) {
  return a.bits == b.bits && a.type == b.type && a.group_size == b.group_size && a.has_zero_point == b.has_zero_point &&
         a.has_min == b.has_min && a.unit_size == b.unit_size && a.input == b.input;
}

}  // namespace

WeightShape ShapeOf(const LinearSource& source) {
  WeightShape shape{.out = source.out(), .in = source.in(), .has_bias = !source.bias.empty()};
  if (source.quantized != nullptr) {
    shape.bits = source.quantized->bits;
    shape.type = source.quantized->type;
    shape.group_size = source.quantized->group_size;
    shape.has_zero_point = !source.quantized->zero_point.empty();
    shape.has_min = !source.quantized->min.empty();
    shape.unit_size = source.quantized->unit_size;
    shape.input = source.input;
  }
  return shape;
}

std::vector<size_t> MatrixEnds(absl::Span<const WeightShape> parts) {
  std::vector<size_t> ends;
  for (size_t i = 1; i <= parts.size(); ++i) {
    if (i == parts.size() || !CanShareMatrix(parts[i - 1], parts[i])) ends.push_back(i);
  }
  return ends;
}

GemmProblem StackedProblem(absl::Span<const WeightShape> parts) {
  const WeightShape& first = parts[0];
  GemmProblem problem{.k = first.in,
                      .group_size = first.group_size,
                      .bits = first.bits,
                      .has_zero_point = first.has_zero_point,
                      .has_min = first.has_min,
                      .scale = first.scale,
                      .unit_size = first.unit_size};
  for (const WeightShape& part : parts) problem.n += part.out;
  return problem;
}

}  // namespace pith
