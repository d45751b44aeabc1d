#include "quantization/formats/bitsandbytes.h"

#include <cmath>

#include "base/status.h"
#include "quantization/formats/outlier_columns.h"
#include "quantization/quant_method.h"

namespace pith {
namespace {

constexpr absl::string_view kName = "bitsandbytes";
constexpr absl::string_view kSuffixes[] = {"weight", "SCB", "weight_format", kOutlierIndexSuffix, kOutlierWeightSuffix};
constexpr float kLargestCode = 127.0f;
// Keys of the config; the second is our own, which loaders of the method pass over.
constexpr char kThreshold[] = "llm_int8_threshold", kColumns[] = "llm_int8_outlier_columns", kStored[] = "stored";

const char* Refusal(const QuantizationArgs& args, MatrixShape) {
  if (args.strategy != QuantizationStrategy::kChannel) return "expected one scale per channel, found another strategy";
  return args.symmetric ? nullptr : "expected symmetric codes, found zero points";
}

absl::StatusOr<MatrixShape> ReadShape(const ModuleTensors& tensors, const QuantizationArgs&) { return ReadCodeShape(tensors, DType::kI8); }

// weight_format names the order of the codes on a device; 0, row by row, is the only one that files have.
absl::Status CheckOrder(const ModuleTensors& tensors) {
  const TensorView* view = tensors.Find("weight_format");
  if (view == nullptr) return absl::OkStatus();
  if (view->dtype != DType::kU8 || (view->shape != Shape{} && view->shape != Shape{1})) {
    return BadFileError(tensors.NameOf("weight_format"), ": expected U8 [], found ", DTypeName(view->dtype), " ", ShapeName(view->shape));
  }
  return absl::OkStatus();
}

absl::Status Check(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape) {
  RETURN_IF_ERROR(CheckOnlyTensors(tensors, kSuffixes));
  RETURN_IF_ERROR(CheckMatrixShape(tensors.NameOf("weight"), args, shape));
  RETURN_IF_ERROR(CheckTensor(tensors, "weight", {DType::kI8}, {shape.out, shape.in}, ""));
  RETURN_IF_ERROR(CheckTensor(tensors, "SCB", {DType::kF32}, {shape.out}, "(per row)"));
  RETURN_IF_ERROR(CheckOutlierColumns(tensors, shape));
  return CheckOrder(tensors);
}

std::vector<StoredTensorSpec> Layout(const QuantizationArgs&, MatrixShape shape, DType) {
  return {{"weight", DType::kI8, {shape.out, shape.in}}, {"SCB", DType::kF32, {shape.out}}, {"weight_format", DType::kU8, {}}};
}

absl::StatusOr<QuantizedTensor> Decode(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape) {
  RETURN_IF_ERROR(Check(tensors, args, shape));
  if (const TensorView* order = tensors.Find("weight_format"); order != nullptr && order->data[0] != 0) {
    return NotSupportedError(tensors.NameOf("weight_format"), ": expected 0 (codes row by row), found ", int{order->data[0]});
  }
  QuantizedTensor weight;
  weight.out = shape.out;
  weight.in = weight.group_size = shape.in;
  weight.scale.resize(static_cast<size_t>(shape.out));
  RETURN_IF_ERROR(ConvertToFloat(*tensors.Find("SCB"), absl::MakeSpan(weight.scale)));
  for (size_t o = 0; o < weight.scale.size(); ++o) {
    if (!std::isfinite(weight.scale[o])) {
      return BadFileError(tensors.NameOf("SCB"), ": expected finite magnitudes, found ", weight.scale[o], " at index ", o);
    }
    weight.scale[o] /= kLargestCode;
  }
  const uint8_t* codes = tensors.Find("weight")->data;
  weight.code.resize(static_cast<size_t>(shape.out * shape.in));
  for (size_t i = 0; i < weight.code.size(); ++i) weight.code[i] = codes[i] ^ 0x80;
  RETURN_IF_ERROR(DecodeOutlierColumns(tensors, weight));
  weight.stored_bits_per_weight = StoredBitsPerWeight(tensors, kSuffixes, shape);
  return weight;
}

absl::StatusOr<std::vector<StoredTensor>> Encode(const QuantizedTensor& weight, const QuantizationArgs& args) {
  RETURN_IF_ERROR(CheckEncodable(weight, args));
  std::vector<StoredTensor> stored;
  stored.push_back({"weight", Tensor(DType::kI8, {weight.out, weight.in})});
  for (size_t i = 0; i < weight.code.size(); ++i) stored[0].tensor.data()[i] = weight.code[i] ^ 0x80;
  stored.push_back({"SCB", Tensor(DType::kF32, {weight.out})});
  for (int64_t o = 0; o < weight.out; ++o) {
    const float scale = weight.scale[o], magnitude = scale * kLargestCode;
    if (magnitude / kLargestCode != scale) {
      return NotSupportedError("weight format ", kName, ": expected scales that are an F32 number over 127, found ", scale, " in row ", o);
    }
    stored[1].tensor.as<float>()[o] = magnitude;
  }
  stored.push_back({"weight_format", Tensor(DType::kU8, {})});
  stored[2].tensor.data()[0] = 0;
  for (StoredTensor& part : EncodeOutlierColumns(weight)) stored.push_back(std::move(part));
  return stored;
}

// What the threshold declares: int8 activations per token, with outliers from it on unless it is 0. Loaders differ in what its absence
// means, so that then the activations are left alone.
absl::StatusOr<std::optional<QuantizationArgs>> ParseInput(const Json& json) {
  constexpr double kLargest = 3e38;  // of f32
  const Json* threshold = FindMember(json, kThreshold);
  ASSIGN_OR_RETURN(const std::string columns, GetString(json, kColumns, ""));
  if (!columns.empty() && columns != kStored)
    return BadFileError("\"", kColumns, "\": expected \"", kStored, "\", found ", Printable(columns));
  QuantizationArgs input{.strategy = QuantizationStrategy::kToken, .dynamic = true, .fixed_outliers = !columns.empty()};
  if (threshold != nullptr) {
    ASSIGN_OR_RETURN(const double value, GetDouble(json, kThreshold, 0, kLargest));
    input.outlier_threshold = static_cast<float>(value);
  }
  if (input.fixed_outliers && input.outlier_threshold == 0) {
    return BadFileError("\"", kColumns, "\": expected a positive ", kThreshold, " beside it, found none");
  }
  if (threshold == nullptr) return std::optional<QuantizationArgs>();
  return std::optional<QuantizationArgs>(input);
}

absl::StatusOr<QuantizationConfig> Parse(const Json& json) {
  ASSIGN_OR_RETURN(const bool four_bits, GetBool(json, "load_in_4bit", false));
  ASSIGN_OR_RETURN(const bool eight_bits, GetBool(json, "load_in_8bit", false));
  if (four_bits || !eight_bits) return NotSupportedError("\"load_in_8bit\": expected true, found ", four_bits ? "4 bits" : "false");
  // Without a list the head stays as it is.
  ASSIGN_OR_RETURN(const std::vector<std::string> skipped, GetTexts(json, "llm_int8_skip_modules", {"lm_head"}));
  ASSIGN_OR_RETURN(QuantizationConfig config,
                   MakeMethodConfig(kName, {.num_bits = 8, .strategy = QuantizationStrategy::kChannel}, skipped));
  QuantizationScheme& scheme = config.groups[0].scheme;
  ASSIGN_OR_RETURN(scheme.input_activations, ParseInput(json));
  scheme.name = std::string(PresetName(scheme.weights, scheme.input_activations));
  return config;
}

// Without activations: the threshold of the method as it was published, for loaders differ in what its absence means.
Json Write(const QuantizationConfig& config) {
  const std::optional<QuantizationArgs>& input = config.groups[0].scheme.input_activations;
  Json json = {{"quant_method", "bitsandbytes"},
               {"load_in_8bit", true},
               {kThreshold, static_cast<double>(input.has_value() ? input->outlier_threshold : kOutlierThreshold)},
               {"llm_int8_skip_modules", SkippedParts(config)}};
  if (input.has_value() && input->fixed_outliers) json[kColumns] = kStored;
  return json;
}

constexpr QuantMethod kMethod = {.name = "bitsandbytes", .parse = Parse, .write = Write, .skip = MatchPartOfName};

}  // namespace

const WeightFormat kBitsandbytes = {.name = kName,
                                    .min_bits = 8,
                                    .max_bits = 8,
                                    .weight_suffix = "weight",
                                    .scale_suffix = "SCB",
                                    .scale_dtype = DType::kF32,
                                    .refusal = Refusal,
                                    .read_shape = ReadShape,
                                    .layout = Layout,
                                    .encode = Encode,
                                    .check = Check,
                                    .decode = Decode,
                                    .method = &kMethod};

}  // namespace pith
