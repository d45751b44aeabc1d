#include "quantization/formats/fp8_block.h"

#include "absl/strings/ascii.h"
#include "base/status.h"
#include "quantization/formats/float_quantized.h"
#include "quantization/quant_method.h"

namespace pith {
namespace {

constexpr absl::string_view kName = "fp8-block", kScales = "weight_scale_inv";
constexpr absl::string_view kSuffixes[] = {"weight", kScales};
constexpr int64_t kMaxBlockSide = 1 << 16;

const char* Refusal(const QuantizationArgs& args, MatrixShape) {
  return args.strategy == QuantizationStrategy::kBlock ? nullptr : "expected scales per block, found another strategy";
}

absl::StatusOr<MatrixShape> ReadShape(const ModuleTensors& tensors, const QuantizationArgs&) {
  return ReadCodeShape(tensors, DType::kF8E4M3);
}

absl::Status Check(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape) {
  RETURN_IF_ERROR(CheckOnlyTensors(tensors, kSuffixes));
  RETURN_IF_ERROR(CheckMatrixShape(tensors.NameOf("weight"), args, shape));
  RETURN_IF_ERROR(CheckTensor(tensors, "weight", {DType::kF8E4M3}, {shape.out, shape.in}, ""));
  return CheckScale(tensors, args, shape, kScales);
}

std::vector<StoredTensorSpec> Layout(const QuantizationArgs& args, MatrixShape shape, DType scale_dtype) {
  return {{"weight", DType::kF8E4M3, {shape.out, shape.in}}, {std::string(kScales), scale_dtype, ScaleShape(args, shape)}};
}

absl::StatusOr<std::vector<StoredTensor>> Encode(const QuantizedTensor& weight, const QuantizationArgs& args) {
  ASSIGN_OR_RETURN(std::vector<StoredTensor> stored, kFloatQuantized.encode(weight, args));
  StoredTensor scales{std::string(kScales), Tensor(DType::kF32, ScaleShape(args, {weight.out, weight.in}))};
  RETURN_IF_ERROR(ConvertToFloat(stored.back().tensor.view(), scales.tensor.as<float>()));
  stored.back() = std::move(scales);
  return stored;
}

absl::StatusOr<QuantizedTensor> Decode(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape) {
  RETURN_IF_ERROR(Check(tensors, args, shape));
  ASSIGN_OR_RETURN(QuantizedTensor weight, DecodeScales(tensors, args, shape, kScales));
  RETURN_IF_ERROR(DecodeFloatCodes(tensors, weight));
  weight.stored_bits_per_weight = StoredBitsPerWeight(tensors, kSuffixes, shape);
  return weight;
}

absl::StatusOr<QuantizationConfig> Parse(const Json& json) {
  const Json* block = FindMember(json, "weight_block_size");
  if (block == nullptr) {
    return NotSupportedError("\"weight_block_size\": expected [rows, columns], found none; fp8 per tensor is read as compressed-tensors");
  }
  int sides[2] = {0, 0};
  bool valid = block->is_array() && block->size() == 2;
  for (size_t i = 0; valid && i < 2; ++i) {
    const Json& side = (*block)[i];
    valid = side.is_number_integer() && side >= 1 && side <= kMaxBlockSide;
    if (valid) sides[i] = side.get<int>();
  }
  if (!valid) {
    return BadFileError("\"weight_block_size\": expected [rows, columns], two positive integers, found ", Printable(DumpJson(*block), 60));
  }
  ASSIGN_OR_RETURN(const std::string numbers, GetString(json, "fmt", "e4m3"));
  if (absl::AsciiStrToLower(numbers) != "e4m3") {
    return NotSupportedError("\"fmt\": expected \"e4m3\", found \"", Printable(numbers, 60), "\"");
  }
  ASSIGN_OR_RETURN(const std::string activations, GetString(json, "activation_scheme", "dynamic"));
  if (activations != "dynamic") {
    return NotSupportedError("\"activation_scheme\": expected \"dynamic\", found \"", Printable(activations, 60), "\"");
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> skipped, GetTexts(json, "modules_to_not_convert", {"lm_head"}));
  const QuantizationArgs weights{
      .type = QuantizationType::kFloat, .strategy = QuantizationStrategy::kBlock, .block_rows = sides[0], .block_cols = sides[1]};
  ASSIGN_OR_RETURN(QuantizationConfig config, MakeMethodConfig(kName, weights, skipped));
  QuantizationScheme& scheme = config.groups[0].scheme;
  scheme.input_activations = QuantizationArgs{
      .type = QuantizationType::kFloat, .strategy = QuantizationStrategy::kGroup, .group_size = sides[1], .dynamic = true};
  scheme.name = std::string(PresetName(scheme.weights, scheme.input_activations));
  return config;
}

Json Write(const QuantizationConfig& config) {
  const QuantizationArgs& weights = *config.groups[0].scheme.weights;
  return {{"quant_method", "fp8"},
          {"fmt", "e4m3"},
          {"activation_scheme", "dynamic"},
          {"weight_block_size", {weights.block_rows, weights.block_cols}},
          {"modules_to_not_convert", SkippedParts(config)}};
}

constexpr QuantMethod kMethod = {.name = "fp8", .parse = Parse, .write = Write, .skip = MatchPartOfName};

}  // namespace

const WeightFormat kFp8Block = {.name = kName,
                                .type = QuantizationType::kFloat,
                                .min_bits = 8,
                                .max_bits = 8,
                                .weight_suffix = "weight",
                                .scale_suffix = kScales,
                                .scale_dtype = DType::kF32,
                                .refusal = Refusal,
                                .read_shape = ReadShape,
                                .layout = Layout,
                                .encode = Encode,
                                .check = Check,
                                .decode = Decode,
                                .method = &kMethod};

}  // namespace pith
