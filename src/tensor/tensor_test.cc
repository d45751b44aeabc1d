#include "tensor/tensor.h"

#include <rapidcheck/gtest.h>
#include <cmath>
#include <limits>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Shape, ElementsAndNames) {
  EXPECT_EQ(NumElements({}), 1);
  EXPECT_EQ(NumElements({3, 4, 5}), 60);
  EXPECT_EQ(NumElements({3, 0, 5}), 0);
  EXPECT_EQ(ShapeName({4096, 1376}), "[4096, 1376]");
  EXPECT_EQ(ShapeName({}), "[]");
}

TEST(CheckedNumElements, RefusesNegativeDimensionsAndOverflow) {
  constexpr int64_t kBig = int64_t{1} << 31;
  EXPECT_EQ(*CheckedNumElements({}), 1);
  EXPECT_EQ(*CheckedNumElements({kBig, kBig}), int64_t{1} << 62);
  EXPECT_EQ(*CheckedNumElements({kBig, kBig, kBig, 0}), 0);
  for (const Shape& shape : {Shape{kBig, kBig, 2}, Shape{kBig, kBig, kBig}, Shape{INT64_MAX}, Shape{INT64_MAX, INT64_MAX}, Shape{-1},
                             Shape{0, -1}, Shape{INT64_MIN, 2}, Shape{1152, (int64_t{1} << 53) + 1}}) {
    const auto count = CheckedNumElements(shape);
    EXPECT_EQ(count.status().code(), absl::StatusCode::kDataLoss) << ShapeName(shape);
    EXPECT_THAT(std::string(count.status().message()), HasSubstr(ShapeName(shape)));
  }
}

RC_GTEST_PROP(CheckedNumElementsProperty, IsTheExactProductOrAnError, ()) {
  Shape shape;
  __int128 product = 1;
  for (int i = *rc::gen::inRange(0, 5); i > 0; --i) shape.push_back(*rc::gen::inRange<int64_t>(1, int64_t{1} << *rc::gen::inRange(1, 40)));
  bool fits = true;
  for (const int64_t dim : shape) {
    product *= dim;
    if (product > (static_cast<__int128>(1) << 62)) {
      fits = false;
      break;
    }
  }
  const auto count = CheckedNumElements(shape);
  RC_ASSERT(count.ok() == fits);
  if (fits) RC_ASSERT(static_cast<__int128>(*count) == product);
}

TEST(Tensor, IsZeroedAndTyped) {
  Tensor tensor(DType::kI16, {2, 3});
  EXPECT_EQ(tensor.num_elements(), 6);
  EXPECT_THAT(tensor.as<int16_t>(), ElementsAre(0, 0, 0, 0, 0, 0));
  tensor.as<int16_t>()[4] = -7;
  const TensorView view = tensor.view();
  EXPECT_EQ(view.dtype, DType::kI16);
  EXPECT_EQ(view.shape, Shape({2, 3}));
  EXPECT_EQ(view.num_bytes(), 12);
  EXPECT_EQ(view.bytes().size(), 12u);
  EXPECT_EQ(view.as<int16_t>()[4], -7);
}

TEST(Tensor, MovesKeepTheElements) {
  Tensor a(DType::kF32, {2});
  a.as<float>()[1] = 5;
  Tensor b = std::move(a);
  EXPECT_EQ(b.as<float>()[1], 5);
  a = Tensor(DType::kF32, {1});
  b = std::move(a);
  EXPECT_EQ(b.num_elements(), 1);
}

TEST(Tensor, EmptyOnesWork) {
  const Tensor tensor(DType::kF32, {0, 8});
  EXPECT_TRUE(tensor.as<float>().empty());
  std::vector<float> out;
  EXPECT_TRUE(ConvertToFloat(tensor.view(), absl::MakeSpan(out)).ok());
}

TEST(TensorDeathTest, AsOfAnotherTypeIsABug) {
  Tensor tensor(DType::kF32, {1});
  EXPECT_DEATH(tensor.as<int32_t>(), "CHECK failed");
  EXPECT_DEATH(tensor.view().as<bfloat16>(), "CHECK failed");
}

TEST(MatrixView, RowsAreStrideApart) {
  std::vector<int> data = {0, 1, 2, 3, 4, 5, 6, 7};
  const MatrixView<int> matrix(data.data(), 2, 3, 4);
  EXPECT_EQ(matrix.row(1)[2], 6);
  EXPECT_EQ(MatrixView<int>(data.data(), 2, 4).stride, 4);
#ifdef PITH_DCHECK
  EXPECT_DEATH(matrix.row(2), "CHECK failed");
#endif
}

template <typename T> std::vector<float> Convert(DType dtype, const std::vector<T>& values) {
  // One byte off any alignment: views into files need not be aligned.
  std::vector<uint8_t> bytes = {0};
  const uint8_t* begin = reinterpret_cast<const uint8_t*>(values.data());
  bytes.insert(bytes.end(), begin, begin + values.size() * sizeof(T));
  const TensorView view = {dtype, {static_cast<int64_t>(values.size())}, bytes.data() + 1};
  std::vector<float> out(values.size());
  const absl::Status status = ConvertToFloat(view, absl::MakeSpan(out));
  EXPECT_TRUE(status.ok()) << status;
  return out;
}

TEST(ConvertToFloat, EveryNumericType) {
  EXPECT_THAT(Convert<float>(DType::kF32, {1.5f, -0.1f}), ElementsAre(1.5f, -0.1f));
  EXPECT_THAT(Convert<double>(DType::kF64, {0.1, 1e300}), ElementsAre(0.1f, std::numeric_limits<float>::infinity()));
  EXPECT_THAT(Convert<uint16_t>(DType::kF16, {0x3C00, 0xC000}), ElementsAre(1.0f, -2.0f));
  EXPECT_THAT(Convert<uint16_t>(DType::kBF16, {0x3F80, 0xC000}), ElementsAre(1.0f, -2.0f));
  EXPECT_THAT(Convert<uint8_t>(DType::kF8E4M3, {0x38, 0xFE}), ElementsAre(1.0f, -448.0f));
  EXPECT_THAT(Convert<int8_t>(DType::kI8, {-128, 127}), ElementsAre(-128.0f, 127.0f));
  EXPECT_THAT(Convert<uint8_t>(DType::kU8, {255}), ElementsAre(255.0f));
  EXPECT_THAT(Convert<int16_t>(DType::kI16, {-32768}), ElementsAre(-32768.0f));
  EXPECT_THAT(Convert<uint16_t>(DType::kU16, {65535}), ElementsAre(65535.0f));
  EXPECT_THAT(Convert<int32_t>(DType::kI32, {INT32_MIN}), ElementsAre(-2147483648.0f));
  EXPECT_THAT(Convert<uint32_t>(DType::kU32, {UINT32_MAX}), ElementsAre(4294967296.0f));
  EXPECT_THAT(Convert<int64_t>(DType::kI64, {-3}), ElementsAre(-3.0f));
  EXPECT_THAT(Convert<uint64_t>(DType::kU64, {UINT64_MAX}), ElementsAre(18446744073709551616.0f));
}

TEST(ConvertToFloat, TypesWithoutAMeaningAreRefusedByName) {
  const uint8_t byte = 1;
  float out = 0;
  for (const DType dtype : {DType::kBool, DType::kF8E5M2}) {
    const absl::Status status = ConvertToFloat({dtype, {1}, &byte}, absl::MakeSpan(&out, 1));
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(DTypeName(dtype))));
  }
}

}  // namespace
}  // namespace pith
