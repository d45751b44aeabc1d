#include "quantization/formats/gguf_encoding.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_join.h"
#include "base/float_types.h"
#include "base/status.h"
#include "quantization/formats/gguf_block_encoders.h"
#include "quantization/formats/stored_tensors.h"

namespace pith {
namespace {

constexpr float kLargestHalf = 65504.0f;

// A type that can be written, and the one that takes rows it cannot divide.
struct WritableType {
  absl::string_view name, fallback;
  void (*encode)(const float* x, const float* importance, float mean_square, uint8_t* block);  // null for a float type
};

// THE TABLE.
constexpr WritableType kWritable[] = {
    {"F32", "", nullptr},
    {"F16", "", nullptr},
    {"BF16", "", nullptr},
    {"Q8_0", "F16", EncodeBlockQ8_0},
    {"Q4_0", "F16", EncodeBlockQ4_0},
    {"Q4_1", "F16", EncodeBlockQ4_1},
    {"Q5_0", "F16", EncodeBlockQ5_0},
    {"Q5_1", "F16", EncodeBlockQ5_1},
    {"Q4_K", "Q5_0", EncodeBlockQ4K},
    {"Q5_K", "Q5_1", EncodeBlockQ5K},
    {"Q6_K", "Q8_0", EncodeBlockQ6K},
};

const WritableType* FindWritable(absl::string_view name) {
  for (const WritableType& row : kWritable) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const GgufType& TypeNamed(absl::string_view name) {
  const absl::Span<const GgufType> types = GgufTypes();
  const auto it = std::find_if(types.begin(), types.end(), [&](const GgufType& type) { return type.name == name; });
  CHECK(it != types.end());
  return *it;
}

absl::Status EncodeFloats(const GgufType& type, absl::Span<const float> row, uint8_t* bytes) {
  for (size_t i = 0; i < row.size(); ++i) {
    if (type.dtype == DType::kF32) {
      std::memcpy(bytes + 4 * i, &row[i], 4);
      continue;
    }
    const uint16_t bits = type.dtype == DType::kF16 ? ToFloat16(row[i]).bits : ToBfloat16(row[i]).bits;
    const uint16_t exponent = type.dtype == DType::kF16 ? 0x7C00 : 0x7F80;
    if ((bits & exponent) == exponent)
      return BadFileError("[", i, "]: expected a number within the range of ", type.name, ", found ", row[i]);
    std::memcpy(bytes + 2 * i, &bits, 2);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<const GgufType*> FindWritableGgufType(absl::string_view name) {
  if (FindWritable(name) != nullptr) return &TypeNamed(name);
  const auto append_name = [](std::string* out, const WritableType& row) { absl::StrAppend(out, row.name); };
  return NotSupportedError("GGUF type \"", Printable(name, 40), "\": not supported; writable are ",
                           absl::StrJoin(kWritable, " ", append_name));
}

const GgufType& GgufTypeForRows(const GgufType& type, int64_t in) {
  const GgufType* fitting = &type;
  while (in % fitting->block_elements != 0) {
    const WritableType* row = FindWritable(fitting->name);
    CHECK(row != nullptr && !row->fallback.empty());
    fitting = &TypeNamed(row->fallback);
  }
  return *fitting;
}

absl::Status EncodeGgufRow(const GgufType& type, absl::Span<const float> row, absl::Span<const float> importance,
                           absl::Span<uint8_t> bytes) {
  const WritableType* writable = FindWritable(type.name);
  CHECK(writable != nullptr);
  const int64_t count = static_cast<int64_t>(row.size());
  ASSIGN_OR_RETURN(const int64_t row_bytes, GgufRowBytes(type, count));
  CHECK_EQ(static_cast<int64_t>(bytes.size()), row_bytes);
  CHECK(importance.empty() || importance.size() == row.size());
  double sum_squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(row[i])) return BadFileError("[", i, "]: expected a finite number, found ", row[i]);
    sum_squares += static_cast<double>(row[i]) * row[i];
  }
  if (type.is_float()) return EncodeFloats(type, row, bytes.data());
  for (int64_t i = 0; i < count; ++i) {
    if (std::abs(row[i]) > kLargestHalf) return BadFileError("[", i, "]: expected a number within the range of F16, found ", row[i]);
  }
  const float mean_square = count == 0 ? 0.0f : static_cast<float>(sum_squares / static_cast<double>(count));
  for (int64_t b = 0; b < count / type.block_elements; ++b) {
    writable->encode(row.data() + b * type.block_elements, importance.empty() ? nullptr : importance.data() + b * type.block_elements,
                     mean_square, bytes.data() + b * type.block_bytes);
  }
  return absl::OkStatus();
}

const char* RefuseGgufPacking(const GgufType& type, int bits, QuantizationType code_type, int64_t group_size, bool symmetric) {
  if (type.name != "Q4_0" && type.name != "Q8_0") return "expected Q4_0 or Q8_0 for codes that stay as they are, found another type";
  if (code_type != QuantizationType::kInt || bits != type.bits) return "expected codes as wide as those of the type, found others";
  if (!symmetric) return "expected symmetric codes, found zero points";
  return group_size % type.block_elements == 0 ? nullptr : "expected groups of whole blocks of 32, found others";
}

absl::StatusOr<std::vector<uint8_t>> PackGgufBlocks(const GgufType& type, const QuantizedTensor& weight) {
  const char* refusal = RefuseGgufPacking(type, weight.bits, weight.type, weight.group_size, weight.zero_point.empty());
  if (refusal == nullptr && !weight.min.empty()) refusal = "expected no minimums, found some";
  if (refusal != nullptr) return NotSupportedError("GGUF type ", type.name, ": ", refusal);
  RETURN_IF_ERROR(CheckScalesFit(weight, DType::kF16, type.name));
  const int64_t blocks = weight.out * weight.in / 32;
  std::vector<uint8_t> bytes(static_cast<size_t>(blocks * type.block_bytes));
  for (int64_t b = 0; b < blocks; ++b) {
    const uint16_t scale = ToFloat16(weight.scale[b * 32 / weight.group_size]).bits;
    const uint8_t* code = weight.code.data() + b * 32;
    uint8_t* block = bytes.data() + b * type.block_bytes;
    std::memcpy(block, &scale, 2);
    if (weight.bits == 4) {
      for (int i = 0; i < 16; ++i) block[2 + i] = static_cast<uint8_t>(code[i] | code[16 + i] << 4);
    } else {
      for (int i = 0; i < 32; ++i) block[2 + i] = code[i] ^ 0x80;
    }
  }
  return bytes;
}

}  // namespace pith
