#include "quantization/formats/outlier_columns.h"

#include <limits>

#include "gmock/gmock.h"
#include "quantization/formats/format_test_util.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

constexpr QuantizationArgs kFixed{
    .strategy = QuantizationStrategy::kToken, .dynamic = true, .outlier_threshold = 6.0f, .fixed_outliers = true};

// [2, 3] codes of 0, columns 0 and 2 kept: rows {1, 3} and {4, 6}.
QuantizedTensor Kept() {
  QuantizedTensor weight{.out = 2, .in = 3, .group_size = 3, .code = std::vector<uint8_t>(6, 128), .scale = {1, 1}};
  const float values[] = {1, 2, 3, 4, 5, 6.001f};
  KeepOutlierColumns({values, 2, 3}, {0, 2}, weight);
  return weight;
}

TEST(OutlierColumns, AreKeptInBf16BesideTheCodes) {
  const QuantizedTensor weight = Kept();
  EXPECT_EQ(weight.outlier_column, (std::vector<int32_t>{0, 2}));
  std::vector<float> row(3);
  weight.DequantizeRow(0, absl::MakeSpan(row));
  EXPECT_EQ(row, (std::vector<float>{1, 0, 3}));
  weight.DequantizeRow(1, absl::MakeSpan(row));
  EXPECT_EQ(row, (std::vector<float>{4, 0, 6}));  // 6.001 rounded
}

TEST(OutlierColumns, AreStoredAndReadBack) {
  const std::vector<StoredTensor> stored = EncodeOutlierColumns(Kept());
  ASSERT_EQ(stored.size(), 2u);
  EXPECT_EQ(stored[0].suffix, "outlier_index");
  EXPECT_EQ(stored[0].tensor.shape(), Shape({2}));
  EXPECT_EQ(stored[0].tensor.as<int32_t>()[1], 2);
  EXPECT_EQ(stored[1].suffix, "outlier_weight");
  EXPECT_EQ(stored[1].tensor.shape(), Shape({2, 2}));
  EXPECT_EQ(ToFloat(stored[1].tensor.as<bfloat16>()[2]), 4.0f);  // row 1, column 0
  EXPECT_EQ(*ReadOutlierIndex(Views(stored), InputQuantization{kFixed}, {2, 3}), (std::vector<int32_t>{0, 2}));
  QuantizedTensor read{.out = 2, .in = 3};
  ASSERT_TRUE(DecodeOutlierColumns(Views(stored), read).ok());
  EXPECT_EQ(read.outlier_column, Kept().outlier_column);
  EXPECT_EQ(read.outlier_weight, Kept().outlier_weight);
}

TEST(OutlierColumns, AModuleMayHaveNone) {
  EXPECT_TRUE(EncodeOutlierColumns({.out = 2, .in = 3}).empty());
  EXPECT_TRUE(CheckOutlierColumns({"m", {}}, {2, 3}).ok());
  EXPECT_TRUE(ReadOutlierIndex({"m", {}}, std::nullopt, {2, 3})->empty());
  QuantizedTensor read{.out = 2, .in = 3};
  ASSERT_TRUE(DecodeOutlierColumns({"m", {}}, read).ok());
  EXPECT_TRUE(read.outlier_column.empty());
}

TEST(OutlierColumns, BrokenOnesAreNamed) {
  const auto check = [](const std::vector<StoredTensor>& stored, MatrixShape shape) {
    const absl::Status status = ReadOutlierIndex(Views(stored), InputQuantization{kFixed}, shape).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(check(EncodeOutlierColumns(Kept()), {3, 3}), HasSubstr("m.outlier_weight: expected BF16 [3, 2] (outlier columns), found"));
  EXPECT_THAT(check(EncodeOutlierColumns(Kept()), {2, 2}),
              HasSubstr("m.outlier_index: expected ascending columns below 2, found 2 at index 1"));
  std::vector<StoredTensor> stored = EncodeOutlierColumns(Kept());
  stored[0].tensor.as<int32_t>()[1] = 0;
  EXPECT_THAT(check(stored, {2, 3}), HasSubstr("found 0 at index 1"));
  stored[0].tensor.as<int32_t>()[0] = -1;
  EXPECT_THAT(check(stored, {2, 3}), HasSubstr("found -1 at index 0"));
  for (const size_t missing : {0, 1}) {
    stored = EncodeOutlierColumns(Kept());
    const std::string name = absl::StrCat("m.", stored[missing].suffix);
    stored.erase(stored.begin() + static_cast<int64_t>(missing));
    EXPECT_THAT(check(stored, {2, 3}), HasSubstr(name));
  }
  stored = EncodeOutlierColumns(Kept());
  const absl::Status undeclared = ReadOutlierIndex(Views(stored), std::nullopt, {2, 3}).status();
  EXPECT_THAT(undeclared.message(), HasSubstr("m.outlier_index: expected none, since config.json does not say that columns are stored"));
  stored[1].tensor.as<bfloat16>()[3] = ToBfloat16(std::numeric_limits<float>::infinity());
  QuantizedTensor read{.out = 2, .in = 3};
  EXPECT_THAT(DecodeOutlierColumns(Views(stored), read).message(),
              HasSubstr("m.outlier_weight: expected finite weights, found inf at index 3"));
}

}  // namespace
}  // namespace pith
