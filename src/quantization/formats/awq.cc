#include "quantization/formats/awq.h"

#include <cstring>

#include "absl/strings/ascii.h"
#include "base/status.h"
#include "quantization/formats/input_major.h"
#include "quantization/quant_method.h"

namespace pith {
namespace {

constexpr absl::string_view kName = "awq";
constexpr absl::string_view kSuffixes[] = {"qweight", "qzeros", "scales"};
constexpr int64_t kColumns = 8;                             // in a word
constexpr int kOrder[kColumns] = {0, 2, 4, 6, 1, 3, 5, 7};  // nibble n of a word is this one of its columns

const char* Refusal(const QuantizationArgs& args, MatrixShape shape) {
  if (args.symmetric) return "expected zero points, found symmetric codes";
  if (shape.out % kColumns != 0) return "expected a multiple of 8 columns, found another number";
  return RefuseInputMajorStrategy(args);
}

absl::StatusOr<MatrixShape> ReadShape(const ModuleTensors& tensors, const QuantizationArgs&) {
  const TensorView* view = tensors.Find("qweight");
  const std::string expected = absl::StrCat(tensors.NameOf("qweight"), ": expected I32 [in, out / 8], found ");
  if (view == nullptr) return BadFileError(expected, "no such tensor");
  if (view->dtype != DType::kI32 || view->shape.size() != 2 || view->shape[1] > kMaxMatrixSide) {
    return BadFileError(expected, DTypeName(view->dtype), " ", ShapeName(view->shape));
  }
  return MatrixShape{view->shape[1] * kColumns, view->shape[0]};
}

absl::Status Check(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape) {
  RETURN_IF_ERROR(CheckOnlyTensors(tensors, kSuffixes));
  RETURN_IF_ERROR(CheckMatrixShape(tensors.NameOf("qweight"), args, shape));
  RETURN_IF_ERROR(CheckTensor(tensors, "qweight", {DType::kI32}, {shape.in, shape.out / kColumns}, "(eight 4-bit columns to a word)"));
  const int64_t groups = shape.in / args.columns_per_scale(shape.in);
  RETURN_IF_ERROR(CheckTensor(tensors, "qzeros", {DType::kI32}, {groups, shape.out / kColumns}, "(eight 4-bit columns to a word)"));
  return CheckInputMajorScales(tensors, args, shape);
}

// Words of a tensor [rows, columns / 8] to bytes [columns, rows].
void UnpackColumns(const TensorView& view, std::vector<uint8_t>& bytes) {
  const int64_t rows = view.shape[0], words = view.shape[1];
  bytes.resize(static_cast<size_t>(rows * words * kColumns));
  for (int64_t w = 0; w < words; ++w) {
    for (int64_t r = 0; r < rows; ++r) {
      uint32_t word;
      std::memcpy(&word, view.data + (r * words + w) * 4, 4);
      for (int n = 0; n < kColumns; ++n) bytes[(w * kColumns + kOrder[n]) * rows + r] = static_cast<uint8_t>(word >> (4 * n) & 0xF);
    }
  }
}

Tensor PackColumns(const std::vector<uint8_t>& bytes, int64_t rows, int64_t columns) {
  const int64_t words = columns / kColumns;
  Tensor tensor(DType::kI32, {rows, words});
  for (int64_t w = 0; w < words; ++w) {
    for (int64_t r = 0; r < rows; ++r) {
      uint32_t word = 0;
      for (int n = 0; n < kColumns; ++n) word |= uint32_t{bytes[(w * kColumns + kOrder[n]) * rows + r]} << (4 * n);
      tensor.as<int32_t>()[r * words + w] = static_cast<int32_t>(word);
    }
  }
  return tensor;
}

absl::StatusOr<QuantizedTensor> Decode(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape) {
  RETURN_IF_ERROR(Check(tensors, args, shape));
  ASSIGN_OR_RETURN(QuantizedTensor weight, DecodeInputMajorScales(tensors, args, shape));
  UnpackColumns(*tensors.Find("qweight"), weight.code);
  UnpackColumns(*tensors.Find("qzeros"), weight.zero_point);
  weight.stored_bits_per_weight = StoredBitsPerWeight(tensors, kSuffixes, shape);
  return weight;
}

std::vector<StoredTensorSpec> Layout(const QuantizationArgs& args, MatrixShape shape, DType scale_dtype) {
  const int64_t groups = shape.in / args.columns_per_scale(shape.in);
  return {{"qweight", DType::kI32, {shape.in, shape.out / kColumns}},
          {"qzeros", DType::kI32, {groups, shape.out / kColumns}},
          {"scales", scale_dtype, {groups, shape.out}}};
}

absl::StatusOr<std::vector<StoredTensor>> Encode(const QuantizedTensor& weight, const QuantizationArgs& args) {
  RETURN_IF_ERROR(CheckEncodable(weight, args));
  ASSIGN_OR_RETURN(StoredTensor scales, EncodeInputMajorScales(weight, kName));
  std::vector<StoredTensor> stored;
  stored.push_back({"qweight", PackColumns(weight.code, weight.in, weight.out)});
  stored.push_back({"qzeros", PackColumns(weight.zero_point, weight.num_groups(), weight.out)});
  stored.push_back(std::move(scales));
  return stored;
}

// Older files have a quant_config.json with w_bit and q_group_size.
absl::StatusOr<QuantizationConfig> Parse(const Json& json) {
  ASSIGN_OR_RETURN(const int64_t old_bits, GetInt(json, "w_bit", 1, 32, 4));
  ASSIGN_OR_RETURN(const int64_t bits, GetInt(json, "bits", 1, 32, old_bits));
  if (bits != 4) return NotSupportedError("\"bits\": expected 4, found ", bits);
  ASSIGN_OR_RETURN(const int64_t old_group_size, GetInt(json, "q_group_size", -1, 1 << 24, 128));
  ASSIGN_OR_RETURN(const int64_t group_size, GetInt(json, "group_size", -1, 1 << 24, old_group_size));
  ASSIGN_OR_RETURN(const bool zero_point, GetBool(json, "zero_point", true));
  if (!zero_point) return NotSupportedError("\"zero_point\": expected true, found false");
  ASSIGN_OR_RETURN(const std::string version, GetString(json, "version", "gemm"));
  if (absl::AsciiStrToLower(version) != "gemm") {
    return NotSupportedError("\"version\": expected \"gemm\", found \"", Printable(version, 60), "\"");
  }
  ASSIGN_OR_RETURN(const QuantizationArgs args, GroupedArgs(bits, group_size, false));
  ASSIGN_OR_RETURN(const std::vector<std::string> skipped, GetTexts(json, "modules_to_not_convert", {}));
  ASSIGN_OR_RETURN(QuantizationConfig config, MakeMethodConfig(kName, args, skipped));
  // The head is never quantized.
  bool names_head = false;
  for (const std::string& part : skipped) names_head |= part == "lm_head";
  if (names_head) return config;
  ASSIGN_OR_RETURN(ModulePattern head, MatchPartOfName("lm_head"));
  config.ignore.push_back(std::move(head));
  return config;
}

Json Write(const QuantizationConfig& config) {
  return {{"quant_method", "awq"}, {"bits", 4},         {"group_size", GroupSizeOrMinusOne(*config.groups[0].scheme.weights)},
          {"zero_point", true},    {"version", "gemm"}, {"modules_to_not_convert", SkippedParts(config)}};
}

constexpr QuantMethod kMethod = {.name = "awq", .parse = Parse, .write = Write, .skip = MatchPartOfName};

}  // namespace

const WeightFormat kAwq = {.name = kName,
                           .min_bits = 4,
                           .max_bits = 4,
                           .weight_suffix = "qweight",
                           .scale_suffix = "scales",
                           .scale_dtype = DType::kF16,
                           .refusal = Refusal,
                           .read_shape = ReadShape,
                           .layout = Layout,
                           .encode = Encode,
                           .check = Check,
                           .decode = Decode,
                           .method = &kMethod};

}  // namespace pith
