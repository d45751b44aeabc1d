#include "quantization/formats/format_table.h"

#include "absl/strings/str_join.h"
#include "base/status.h"
#include "quantization/formats/int_quantized.h"
#include "quantization/formats/pack_quantized.h"

namespace pith {
namespace {

// THE TABLE.
const WeightFormat* const kFormats[] = {&kPackQuantized, &kIntQuantized, &kNaiveQuantized};

// The row, if it can hold weights of that kind.
absl::StatusOr<const WeightFormat*> FindRowFor(absl::string_view format, const QuantizationArgs& args) {
  ASSIGN_OR_RETURN(const WeightFormat* row, FindWeightFormat(format));
  RETURN_IF_ERROR(Validate(args));
  const bool integer = args.type == QuantizationType::kInt;
  const bool strategy = args.strategy != QuantizationStrategy::kBlock && args.strategy != QuantizationStrategy::kToken && !args.dynamic;
  if (integer && strategy && args.num_bits >= row->min_bits && args.num_bits <= row->max_bits) return row;
  return NotSupportedError("weight format ", row->name, ": expected static ", row->min_bits, " to ", row->max_bits,
                           " bit integer codes per tensor, channel or group, found ", args.num_bits, "-bit ", integer ? "int" : "float",
                           args.dynamic ? " dynamic" : "", " per ", StrategyName(args.strategy));
}

}  // namespace

absl::Span<const WeightFormat* const> WeightFormats() { return kFormats; }

absl::StatusOr<const WeightFormat*> FindWeightFormat(absl::string_view name) {
  for (const WeightFormat* row : kFormats) {
    if (row->name == name) return row;
  }
  const auto append_name = [](std::string* out, const WeightFormat* row) { absl::StrAppend(out, row->name); };
  return NotSupportedError("weight format \"", Printable(name, 60), "\": not supported; known are ",
                           absl::StrJoin(kFormats, " ", append_name));
}

absl::StatusOr<std::vector<StoredTensorSpec>> PlanWeight(absl::string_view format, const QuantizationArgs& args, MatrixShape shape,
                                                         DType scale_dtype) {
  ASSIGN_OR_RETURN(const WeightFormat* row, FindRowFor(format, args));
  if (args.strategy == QuantizationStrategy::kGroup && shape.in % args.group_size != 0) {
    return UsageError("group_size: expected a divisor of in=", shape.in, ", found ", args.group_size);
  }
  return row->layout(args, shape, scale_dtype);
}

absl::StatusOr<std::vector<StoredTensor>> EncodeWeight(absl::string_view format, const QuantizedTensor& weight,
                                                       const QuantizationArgs& args) {
  ASSIGN_OR_RETURN(const WeightFormat* row, FindRowFor(format, args));
  return row->encode(weight, args);
}

absl::StatusOr<MatrixShape> ReadWeightShape(absl::string_view format, const ModuleTensors& tensors) {
  ASSIGN_OR_RETURN(const WeightFormat* row, FindWeightFormat(format));
  return row->read_shape(tensors);
}

absl::Status CheckWeight(absl::string_view format, const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape) {
  ASSIGN_OR_RETURN(const WeightFormat* row, FindRowFor(format, args));
  return row->check(tensors, args, shape);
}

absl::StatusOr<QuantizedTensor> DecodeWeight(absl::string_view format, const ModuleTensors& tensors, const QuantizationArgs& args,
                                             MatrixShape shape) {
  ASSIGN_OR_RETURN(const WeightFormat* row, FindRowFor(format, args));
  ASSIGN_OR_RETURN(QuantizedTensor weight, row->decode(tensors, args, shape));
  weight.format = std::string(row->name);
  return weight;
}

}  // namespace pith
