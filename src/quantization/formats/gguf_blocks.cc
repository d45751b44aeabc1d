#include "quantization/formats/gguf_blocks.h"

#include <cmath>
#include <cstring>
#include <string>

#include "absl/strings/str_join.h"
#include "base/float_types.h"
#include "base/status.h"
#include "quantization/formats/gguf_block_decoders.h"

namespace pith {
namespace {

constexpr int kMaxBlockElements = 256;
constexpr int kMaxGroups = 16;

// THE TABLE.
constexpr GgufType kTypes[] = {
    {0, "F32", 1, 4, DType::kF32},
    {1, "F16", 1, 2, DType::kF16},
    {30, "BF16", 1, 2, DType::kBF16},
    {2, "Q4_0", 32, 18, DType::kF16, 4, 32, false, DecodeBlockQ4_0},
    {3, "Q4_1", 32, 20, DType::kF16, 4, 32, true, DecodeBlockQ4_1},
    {6, "Q5_0", 32, 22, DType::kF16, 5, 32, false, DecodeBlockQ5_0},
    {7, "Q5_1", 32, 24, DType::kF16, 5, 32, true, DecodeBlockQ5_1},
    {8, "Q8_0", 32, 34, DType::kF16, 8, 32, false, DecodeBlockQ8_0},
    {10, "Q2_K", 256, 84, DType::kF16, 2, 16, true, DecodeBlockQ2K, 80, 82},
    {11, "Q3_K", 256, 110, DType::kF16, 3, 16, false, DecodeBlockQ3K, 108},
    {12, "Q4_K", 256, 144, DType::kF16, 4, 32, true, DecodeBlockQ4K, 0, 2},
    {13, "Q5_K", 256, 176, DType::kF16, 5, 32, true, DecodeBlockQ5K, 0, 2},
    {14, "Q6_K", 256, 210, DType::kF16, 6, 16, false, DecodeBlockQ6K, 208},
    {20, "IQ4_NL", 32, 18, DType::kF16, 8, 32, false, DecodeBlockIq4Nl},
    {23, "IQ4_XS", 256, 136, DType::kF16, 8, 32, false, DecodeBlockIq4Xs, 0},
};

// Types that ggml defines and no row reads, for messages.
struct UnreadType {
  uint32_t id;
  absl::string_view name;
};
constexpr UnreadType kUnreadTypes[] = {
    {9, "Q8_1"}, {15, "Q8_K"}, {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"}, {21, "IQ3_S"}, {22, "IQ2_S"}, {24, "I8"},
    {25, "I16"}, {26, "I32"},  {27, "I64"},     {28, "F64"},    {29, "IQ1_M"},   {34, "TQ1_0"}, {35, "TQ2_0"}, {39, "MXFP4"}, {40, "NVFP4"},
};

// The scales and minimums of one block. `first_group` counts groups from the start of the tensor.
absl::Status CheckFinite(const GgufType& type, const float* scale, const float* min, int64_t first_group, int64_t groups_per_row) {
  const int groups = type.block_elements / type.group_size;
  for (int g = 0; g < groups; ++g) {
    if (std::isfinite(scale[g]) && (!type.has_min || std::isfinite(min[g]))) continue;
    const int64_t group = first_group + g;
    return BadFileError(type.name, " row ", group / groups_per_row, ", group ", group % groups_per_row,
                        ": expected a finite scale and minimum, found ", scale[g], " and ", type.has_min ? min[g] : 0.0f);
  }
  return absl::OkStatus();
}

// The f16 at `offset` of every block.
std::vector<float> ReadUnits(const GgufType& type, absl::Span<const uint8_t> bytes, int64_t blocks, int offset) {
  std::vector<float> units(static_cast<size_t>(blocks));
  for (int64_t b = 0; b < blocks; ++b) {
    float16 unit;
    std::memcpy(&unit.bits, bytes.data() + b * type.block_bytes + offset, 2);
    units[b] = ToFloat(unit);
  }
  return units;
}

absl::Status CheckBytes(const GgufType& type, absl::Span<const uint8_t> bytes, int64_t rows, int64_t row_bytes) {
  if (rows >= 0 && row_bytes > 0 && static_cast<int64_t>(bytes.size()) / row_bytes == rows &&
      static_cast<int64_t>(bytes.size()) % row_bytes == 0) {
    return absl::OkStatus();
  }
  return BadFileError(type.name, ": expected ", rows, " x ", row_bytes, " bytes, found ", bytes.size());
}

}  // namespace

absl::Span<const GgufType> GgufTypes() { return kTypes; }

absl::StatusOr<const GgufType*> FindGgufType(uint32_t id) {
  for (const GgufType& type : kTypes) {
    if (type.id == id) return &type;
  }
  absl::string_view name = "not a type of ggml";
  for (const UnreadType& type : kUnreadTypes) {
    if (type.id == id) name = type.name;
  }
  const auto append_name = [](std::string* out, const GgufType& type) { absl::StrAppend(out, type.name); };
  return NotSupportedError("GGUF type ", id, " (", name, "): not supported; readable are ", absl::StrJoin(kTypes, " ", append_name));
}

absl::StatusOr<int64_t> GgufRowBytes(const GgufType& type, int64_t in) {
  if (in >= 0 && in % type.block_elements == 0 && in <= (int64_t{1} << 48)) return in / type.block_elements * type.block_bytes;
  return BadFileError(type.name, ": expected a row length that is a multiple of ", type.block_elements, ", found ", in);
}

absl::StatusOr<QuantizedTensor> DecodeGgufBlocks(const GgufType& type, absl::Span<const uint8_t> bytes, int64_t out, int64_t in) {
  if (type.is_float()) return UsageError(type.name, ": expected a quantized type, found a float type");
  ASSIGN_OR_RETURN(const int64_t row_bytes, GgufRowBytes(type, in));
  RETURN_IF_ERROR(CheckBytes(type, bytes, out, row_bytes));
  QuantizedTensor weight;
  weight.out = out;
  weight.in = in;
  weight.bits = type.bits;
  weight.group_size = type.group_size;
  weight.format = std::string(type.name);
  weight.scale_dtype = type.dtype;
  weight.stored_bits_per_weight = 8.0 * type.block_bytes / type.block_elements;
  weight.code.resize(static_cast<size_t>(out * in));
  weight.scale.resize(static_cast<size_t>(out * weight.num_groups()));
  if (type.has_min) weight.min.resize(weight.scale.size());
  const int64_t blocks = out * in / type.block_elements;
  const int groups = type.block_elements / type.group_size;
  if (type.scale_unit_offset >= 0) {
    weight.unit_size = type.block_elements;
    weight.scale_unit = ReadUnits(type, bytes, blocks, type.scale_unit_offset);
    if (type.has_min) weight.min_unit = ReadUnits(type, bytes, blocks, type.min_unit_offset);
  }
  for (int64_t b = 0; b < blocks; ++b) {
    float* scale = weight.scale.data() + b * groups;
    float* min = type.has_min ? weight.min.data() + b * groups : nullptr;
    type.decode_block(bytes.data() + b * type.block_bytes, weight.code.data() + b * type.block_elements, scale, min);
    RETURN_IF_ERROR(CheckFinite(type, scale, min, b * groups, weight.num_groups()));
  }
  return weight;
}

absl::Status DequantizeGgufBlocks(const GgufType& type, absl::Span<const uint8_t> bytes, absl::Span<float> out) {
  const int64_t count = static_cast<int64_t>(out.size());
  ASSIGN_OR_RETURN(const int64_t num_bytes, GgufRowBytes(type, count));
  if (static_cast<int64_t>(bytes.size()) != num_bytes) {
    return BadFileError(type.name, ": expected ", num_bytes, " bytes for ", count, " elements, found ", bytes.size());
  }
  if (type.is_float()) return ConvertToFloat(TensorView{type.dtype, {count}, bytes.data()}, out);
  uint8_t code[kMaxBlockElements];
  float scale[kMaxGroups], min[kMaxGroups] = {};
  const int groups = type.block_elements / type.group_size;
  const int zero_point = 1 << (type.bits - 1);
  for (int64_t b = 0; b < count / type.block_elements; ++b) {
    type.decode_block(bytes.data() + b * type.block_bytes, code, scale, min);
    RETURN_IF_ERROR(CheckFinite(type, scale, min, b * groups, count / type.group_size));
    float* row = out.data() + b * type.block_elements;
    for (int i = 0; i < type.block_elements; ++i) {
      const int g = i / type.group_size;
      row[i] = type.has_min ? scale[g] * static_cast<float>(code[i]) - min[g]
                            : scale[g] * static_cast<float>(static_cast<int>(code[i]) - zero_point);
    }
  }
  return absl::OkStatus();
}

}  // namespace pith
