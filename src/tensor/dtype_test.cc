#include "tensor/dtype.h"

#include "gtest/gtest.h"

namespace pith {
namespace {

struct Expected {
  DType dtype;
  const char* name;
  int bytes;
};

// In the order of the enum, which indexes the table.
constexpr Expected kExpected[] = {
    {DType::kBool, "BOOL", 1},      {DType::kU8, "U8", 1},   {DType::kI8, "I8", 1},   {DType::kF8E4M3, "F8_E4M3", 1},
    {DType::kF8E5M2, "F8_E5M2", 1}, {DType::kU16, "U16", 2}, {DType::kI16, "I16", 2}, {DType::kF16, "F16", 2},
    {DType::kBF16, "BF16", 2},      {DType::kU32, "U32", 4}, {DType::kI32, "I32", 4}, {DType::kF32, "F32", 4},
    {DType::kU64, "U64", 8},        {DType::kI64, "I64", 8}, {DType::kF64, "F64", 8},
};

TEST(DType, NamesAndSizes) {
  for (const Expected& row : kExpected) {
    EXPECT_EQ(DTypeName(row.dtype), row.name);
    EXPECT_EQ(ByteSize(row.dtype), row.bytes) << row.name;
    EXPECT_EQ(ParseDType(row.name), row.dtype);
  }
}

TEST(DType, UnknownNamesAreNone) {
  for (const char* name : {"", "f32", "F4", "F8_E8M0", "C64", "F32 ", "BF"}) EXPECT_EQ(ParseDType(name), std::nullopt) << name;
}

}  // namespace
}  // namespace pith
