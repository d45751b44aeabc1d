#include "tensor/dtype.h"

namespace pith {
namespace {

struct Row {
  DType dtype;
  absl::string_view name;
  int64_t bytes;
};

constexpr Row kRows[] = {
    {DType::kBool, "BOOL", 1},      {DType::kU8, "U8", 1},   {DType::kI8, "I8", 1},   {DType::kF8E4M3, "F8_E4M3", 1},
    {DType::kF8E5M2, "F8_E5M2", 1}, {DType::kU16, "U16", 2}, {DType::kI16, "I16", 2}, {DType::kF16, "F16", 2},
    {DType::kBF16, "BF16", 2},      {DType::kU32, "U32", 4}, {DType::kI32, "I32", 4}, {DType::kF32, "F32", 4},
    {DType::kU64, "U64", 8},        {DType::kI64, "I64", 8}, {DType::kF64, "F64", 8},
};

}  // namespace

int64_t ByteSize(DType dtype) { return kRows[static_cast<int>(dtype)].bytes; }

absl::string_view DTypeName(DType dtype) { return kRows[static_cast<int>(dtype)].name; }

std::optional<DType> ParseDType(absl::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace pith
