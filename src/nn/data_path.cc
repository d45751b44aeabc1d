#include "nn/data_path.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/cpu_features.h"
#include "kernels/selection.h"

namespace pith {
namespace {

std::string SchemeName(const QuantizedTensor& tensor) {
  const bool is_compressed_tensors = absl::EndsWith(tensor.format, "-quantized");
  if (!is_compressed_tensors) return tensor.format;
  return absl::StrCat("W", tensor.bits, tensor.zero_point.empty() ? "A16" : "A16_ASYM");
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
    path.scheme = SchemeName(*source.quantized);
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

void DescribeKernel(const GemmKernelEntry& kernel, const std::vector<std::string>& refused, TensorDataPath& path) {
  path.activation = std::string(GemmActivationName(kernel.activation));
  path.accumulator = kernel.accumulator;
  path.output = "f32";
  path.kernel = kernel.name;
  path.isa = std::string(IsaName(static_cast<Isa>(kernel.isa)));
  path.refused = refused;
}

}  // namespace pith
