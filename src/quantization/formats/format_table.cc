#include "quantization/formats/format_table.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/status.h"
#include "quantization/formats/awq.h"
#include "quantization/formats/bitsandbytes.h"
#include "quantization/formats/float_quantized.h"
#include "quantization/formats/fp8_block.h"
#include "quantization/formats/gptq.h"
#include "quantization/formats/int_quantized.h"
#include "quantization/formats/pack_quantized.h"

namespace pith {
namespace {

// THE TABLE.
const WeightFormat* const kFormats[] = {&kPackQuantized, &kIntQuantized, &kNaiveQuantized, &kFloatQuantized, &kNaiveFloatQuantized, &kGptq,
                                        &kGptqV2,        &kAwq,          &kBitsandbytes,   &kFp8Block};

// The row, if it can hold weights of that kind.
absl::StatusOr<const WeightFormat*> FindRowFor(absl::string_view format, const QuantizationArgs& args, MatrixShape shape = {}) {
  ASSIGN_OR_RETURN(const WeightFormat* row, FindWeightFormat(format));
  RETURN_IF_ERROR(Validate(args));
  for (const WeightFormat* candidate : kFormats) {
    if (candidate->name == format && candidate->type == args.type) row = candidate;
  }
  const bool integer = row->type == QuantizationType::kInt;
  const bool strategy = args.strategy != QuantizationStrategy::kToken && !(integer && args.strategy == QuantizationStrategy::kBlock) &&
                        !args.dynamic;
  if (args.type == row->type && strategy && args.num_bits >= row->min_bits && args.num_bits <= row->max_bits) {
    const char* refusal = row->refusal != nullptr ? row->refusal(args, shape) : nullptr;
    if (refusal == nullptr) return row;
    return NotSupportedError("weight format ", row->name, ": ", refusal);
  }
  const std::string expected = integer
                                   ? absl::StrCat(row->min_bits, " to ", row->max_bits, " bit integer codes per tensor, channel or group")
                                   : "8 bit float codes (e4m3fn) per tensor, channel, group or block";
  return NotSupportedError("weight format ", row->name, ": expected static ", expected, ", found ", args.num_bits, "-bit ",
                           args.type == QuantizationType::kInt ? "int" : "float", args.dynamic ? " dynamic" : "", " per ",
                           StrategyName(args.strategy));
}

}  // namespace

absl::Span<const WeightFormat* const> WeightFormats() { return kFormats; }

absl::StatusOr<const WeightFormat*> FindWeightFormat(absl::string_view name) {
  for (const WeightFormat* row : kFormats) {
    if (row->name == name) return row;
  }
  std::vector<absl::string_view> names;
  for (const WeightFormat* row : kFormats) {
    if (std::find(names.begin(), names.end(), row->name) == names.end()) names.push_back(row->name);
  }
  return NotSupportedError("weight format \"", Printable(name, 60), "\": not supported; known are ", absl::StrJoin(names, " "));
}

std::string NoteOnWeight(absl::string_view format, const ModuleTensors& tensors, const QuantizationArgs& args) {
  const absl::StatusOr<const WeightFormat*> row = FindRowFor(format, args);
  return row.ok() && (*row)->note != nullptr ? (*row)->note(tensors, args) : std::string();
}

absl::StatusOr<std::vector<StoredTensorSpec>> PlanWeight(absl::string_view format, const QuantizationArgs& args, MatrixShape shape,
                                                         DType scale_dtype) {
  ASSIGN_OR_RETURN(const WeightFormat* row, FindRowFor(format, args, shape));
  if (args.strategy == QuantizationStrategy::kGroup && shape.in % args.group_size != 0) {
    return UsageError("group_size: expected a divisor of in=", shape.in, ", found ", args.group_size);
  }
  if (args.strategy == QuantizationStrategy::kBlock && shape.in % args.block_cols != 0) {
    return NotSupportedError("block_structure: expected rows of whole blocks of ", args.block_cols, ", found in=", shape.in);
  }
  return row->layout(args, shape, row->scale_dtype.value_or(scale_dtype));
}

absl::StatusOr<std::vector<StoredTensor>> EncodeWeight(absl::string_view format, const QuantizedTensor& weight,
                                                       const QuantizationArgs& args) {
  ASSIGN_OR_RETURN(const WeightFormat* row, FindRowFor(format, args, {weight.out, weight.in}));
  return row->encode(weight, args);
}

absl::StatusOr<MatrixShape> ReadWeightShape(absl::string_view format, const QuantizationArgs& args, const ModuleTensors& tensors) {
  ASSIGN_OR_RETURN(const WeightFormat* row, FindRowFor(format, args));
  return row->read_shape(tensors, args);
}

absl::Status CheckWeight(absl::string_view format, const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape) {
  ASSIGN_OR_RETURN(const WeightFormat* row, FindRowFor(format, args, shape));
  return row->check(tensors, args, shape);
}

absl::StatusOr<QuantizedTensor> DecodeWeight(absl::string_view format, const ModuleTensors& tensors, const QuantizationArgs& args,
                                             MatrixShape shape) {
  ASSIGN_OR_RETURN(const WeightFormat* row, FindRowFor(format, args, shape));
  ASSIGN_OR_RETURN(QuantizedTensor weight, row->decode(tensors, args, shape));
  weight.format = std::string(row->name);
  return weight;
}

}  // namespace pith
