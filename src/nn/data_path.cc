#include "nn/data_path.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/cpu_features.h"
#include "quantization/quantization_scheme.h"

namespace pith {
namespace {

std::string CodeName(QuantizationType type, int bits) { return absl::StrCat(type == QuantizationType::kFloat ? "FP" : "", bits); }

// A preset's name, else one of the same form: "W3A16", "W4AFP8".
std::string SchemeName(const QuantizedTensor& tensor, const std::optional<InputQuantization>& input) {
  const bool is_compressed_tensors = absl::EndsWith(tensor.format, "-quantized");
  const bool llm_int8 = input.has_value() && input->args.outlier_threshold > 0;
  if (!is_compressed_tensors && !llm_int8) return tensor.format;
  const QuantizationArgs weights{.num_bits = tensor.bits, .type = tensor.type, .symmetric = tensor.zero_point.empty()};
  const std::optional<QuantizationArgs> activations = input.has_value() ? std::optional(input->args) : std::nullopt;
  const absl::string_view preset = PresetName(weights, activations);
  if (!preset.empty()) return std::string(preset);
  const std::string activation = activations.has_value() ? CodeName(activations->type, activations->num_bits) : "16";
  return absl::StrCat("W", CodeName(tensor.type, tensor.bits), "A", activation, weights.symmetric ? "" : "_ASYM");
}

}  // namespace

TensorDataPath DescribeStorage(const LinearSource& source) {
  TensorDataPath path;
  path.name = source.name;
  path.out = source.out();
  path.in = source.in();
  path.stored_bytes = source.stored_bytes;
  if (source.quantized != nullptr) {
    path.packing = source.quantized->format;
    path.scheme = SchemeName(*source.quantized, source.input);
    path.stored_bits = source.quantized->stored_bits_per_weight;
    path.scale_dtype = absl::AsciiStrToLower(DTypeName(source.quantized->scale_dtype));
    path.group_size = source.quantized->group_size;
  } else {
    const DType dtype = source.dense->dtype;
    path.packing = absl::StrCat(absl::AsciiStrToLower(DTypeName(dtype)), dtype == DType::kBF16 ? "" : " rounded to bf16");
    path.scheme = "BF16";
    path.stored_bits = static_cast<double>(8 * ByteSize(dtype));
  }
  return path;
}

TensorDataPath StorageOf(const TensorDataPath& path) {
  return {.name = path.name,
          .out = path.out,
          .in = path.in,
          .packing = path.packing,
          .scheme = path.scheme,
          .stored_bits = path.stored_bits,
          .scale_dtype = path.scale_dtype,
          .group_size = path.group_size,
          .stored_bytes = path.stored_bytes};
}

void DescribeKernel(const LinearKernel& chosen, TensorDataPath& path) {
  path.activation = chosen.activation;
  path.outlier_columns = chosen.input.outlier_columns;
  path.accumulator = chosen.kernel->accumulator;
  path.output = "f32";
  path.kernel = chosen.kernel->name;
  path.isa = std::string(IsaName(static_cast<Isa>(chosen.kernel->isa)));
  path.emulated = chosen.kernel->emulated != nullptr ? chosen.kernel->emulated : "";
  path.refused = chosen.refused;
}

}  // namespace pith
