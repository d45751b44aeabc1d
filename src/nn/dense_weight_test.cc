#include "nn/dense_weight.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/float_types.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename T> TensorView ViewOf(const std::vector<T>& values, Shape shape) {
  return {DTypeOf<T>::value, std::move(shape), reinterpret_cast<const uint8_t*>(values.data())};
}

TEST(ConvertToBfloat16, RoundsEveryFloatTypeToNearestEven) {
  ThreadPool pool(2);
  std::vector<uint16_t> out(4);
  // 1 + 2^-8 lies halfway between two bf16 values: to even; a hair more goes up.
  const std::vector<float> f32 = {1.0f, 1.00390625f, 1.00390637f, -2.5f};
  ASSERT_TRUE(ConvertToBfloat16("w", ViewOf(f32, {2, 2}), pool, absl::MakeSpan(out)).ok());
  EXPECT_THAT(out, ElementsAre(0x3F80, 0x3F80, 0x3F81, 0xC020));
  const std::vector<float16> f16 = {{0x3C00}, {0x3C04}, {0x3C05}, {0xC100}};
  ASSERT_TRUE(ConvertToBfloat16("w", ViewOf(f16, {4}), pool, absl::MakeSpan(out)).ok());
  EXPECT_THAT(out, ElementsAre(0x3F80, 0x3F80, 0x3F81, 0xC020));
  const std::vector<bfloat16> bf16 = {{0x3F80}, {0x0001}, {0x8000}, {0x7F7F}};
  ASSERT_TRUE(ConvertToBfloat16("w", ViewOf(bf16, {4}), pool, absl::MakeSpan(out)).ok());
  EXPECT_THAT(out, ElementsAre(0x3F80, 0x0001, 0x8000, 0x7F7F));
}

TEST(ConvertToBfloat16, ReadsUnalignedBytes) {
  ThreadPool pool(1);
  const float values[] = {1.5f, -3.0f, 7.0f};
  std::vector<uint8_t> bytes(sizeof(values) + 1);
  std::memcpy(bytes.data() + 1, values, sizeof(values));
  std::vector<uint16_t> out(3);
  ASSERT_TRUE(ConvertToBfloat16("w", {DType::kF32, {3}, bytes.data() + 1}, pool, absl::MakeSpan(out)).ok());
  EXPECT_THAT(out, ElementsAre(0x3FC0, 0xC040, 0x40E0));
}

TEST(ConvertToBfloat16, NamesTheFirstValueThatIsNotFinite) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    std::vector<float> values(100 * 1000, 1.0f);
    values[99 * 1000 + 1] = -std::numeric_limits<float>::infinity();
    values[41 * 1000 + 7] = std::nanf("");
    values[41 * 1000 + 8] = std::nanf("");
    std::vector<uint16_t> out(values.size());
    absl::Status status = ConvertToBfloat16("a.weight", ViewOf(values, {100, 1000}), pool, absl::MakeSpan(out));
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_EQ(status.message(), "a.weight: expected finite values, found NaN at [41, 7]");
    values[41 * 1000 + 7] = values[41 * 1000 + 8] = 0.0f;
    status = ConvertToBfloat16("a.weight", ViewOf(values, {100, 1000}), pool, absl::MakeSpan(out));
    EXPECT_EQ(status.message(), "a.weight: expected finite values, found -infinity at [99, 1]");
  }
}

TEST(ConvertToBfloat16, RefusesWhatBfloat16CannotHold) {
  ThreadPool pool(1);
  std::vector<uint16_t> out(1);
  const std::vector<float> huge = {std::numeric_limits<float>::max()};
  EXPECT_THAT(std::string(ConvertToBfloat16("w", ViewOf(huge, {1}), pool, absl::MakeSpan(out)).message()), HasSubstr("infinity at [0]"));
  const std::vector<int8_t> codes = {1};
  EXPECT_EQ(ConvertToBfloat16("w", ViewOf(codes, {1}), pool, absl::MakeSpan(out)).code(), absl::StatusCode::kUnimplemented);
}

TEST(ReadVector, ChecksShapeTypeAndValues) {
  const std::vector<bfloat16> values = {{0x3F80}, {0x4000}};
  const auto read = ReadVector("norm.weight", ViewOf(values, {2}), 2);
  ASSERT_TRUE(read.ok());
  EXPECT_THAT(*read, ElementsAre(1.0f, 2.0f));
  EXPECT_EQ(ReadVector("norm.weight", ViewOf(values, {2}), 3).status().message(), "norm.weight: expected [3], found [2]");
  EXPECT_EQ(ReadVector("norm.weight", ViewOf(values, {1, 2}), 2).status().code(), absl::StatusCode::kDataLoss);
  const std::vector<float> bad = {0.0f, std::nanf("")};
  EXPECT_THAT(std::string(ReadVector("norm.weight", ViewOf(bad, {2}), 2).status().message()), HasSubstr("NaN at [1]"));
  const std::vector<int32_t> ints = {1, 2};
  EXPECT_EQ(ReadVector("norm.weight", ViewOf(ints, {2}), 2).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(CheckFinite, CountsRowsAndColumns) {
  std::vector<float> values(12, 1.0f);
  EXPECT_TRUE(CheckFinite("s", values, 4).ok());
  EXPECT_TRUE(CheckFinite("s", {}, 4).ok());
  values[6] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(CheckFinite("s", values, 4).message(), "s: expected finite values, found infinity at [1, 2]");
}

}  // namespace
}  // namespace pith
