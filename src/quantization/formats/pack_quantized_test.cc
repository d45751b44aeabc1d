#include "quantization/formats/pack_quantized.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/json.h"
#include "base/random.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "quantization/formats/format_test_util.h"
#include "rapidcheck.h"
#include "rapidcheck/gtest.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

TEST(PackBits, FourBitsAreNibblesFromTheLowEnd) {
  const std::vector<uint8_t> codes = {1, 2, 3, 4, 5, 6, 7, 8, 15};
  std::vector<uint32_t> words(2);
  PackBits(codes, 4, absl::MakeSpan(words));
  EXPECT_EQ(words, (std::vector<uint32_t>{0x87654321u, 0xFu}));
}

TEST(PackBits, OddWidthsStraddleWords) {
  // 11 codes of 3 bits: the last one lies at bits 30..32.
  const std::vector<uint8_t> codes = {7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0b101};
  std::vector<uint32_t> words(2);
  PackBits(codes, 3, absl::MakeSpan(words));
  EXPECT_EQ(words, (std::vector<uint32_t>{0x40000007u, 1u}));
  EXPECT_EQ(PackedWords(32, 3), 3);
  EXPECT_EQ(PackedWords(33, 3), 4);
  EXPECT_EQ(PackedWords(5, 7), 2);
}

RC_GTEST_PROP(PackBits, UnpackInvertsPackForEveryWidth, ()) {
  const int bits = *rc::gen::inRange(2, 9);
  std::vector<uint8_t> codes = *rc::gen::container<std::vector<uint8_t>>(rc::gen::inRange<int>(0, 1 << bits));
  std::vector<uint32_t> words(static_cast<size_t>(PackedWords(static_cast<int64_t>(codes.size()), bits)));
  PackBits(codes, bits, absl::MakeSpan(words));
  std::vector<uint8_t> unpacked(codes.size());
  UnpackBits(reinterpret_cast<const uint8_t*>(words.data()), bits, absl::MakeSpan(unpacked));
  RC_ASSERT(unpacked == codes);
  // Element i is at bit i * bits of the stream, and nothing lies behind the last one.
  for (size_t i = 0; i < codes.size() * static_cast<size_t>(bits); ++i) {
    const int stored = (words[i / 32] >> (i % 32)) & 1;
    RC_ASSERT(stored == ((codes[i / bits] >> (i % bits)) & 1));
  }
  for (size_t i = codes.size() * static_cast<size_t>(bits); i < words.size() * 32; ++i) RC_ASSERT(((words[i / 32] >> (i % 32)) & 1) == 0);
}

// Codes and zero points of 3, 4 and 8 bits from an independent transcription of the published packing.
TEST(PackQuantized, MatchesTheGoldenVectors) {
  const std::string path = SharedPath("golden/packing.json");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  std::ifstream file(path);
  const Json golden = *ParseJson(std::string(std::istreambuf_iterator<char>(file), {}));
  const int64_t out = golden["out"], in = golden["in"];
  for (const int bits : {3, 4, 8}) {
    SCOPED_TRACE(bits);
    const Json& vectors = golden[absl::StrCat("bits", bits)];
    QuantizedTensor weight;
    weight.out = out;
    weight.in = in;
    weight.bits = bits;
    weight.group_size = golden["group"];
    for (const Json& row : vectors["q_signed"]) {
      for (const int code : row) weight.code.push_back(static_cast<uint8_t>(code + (1 << (bits - 1))));
    }
    for (const Json& row : vectors["zp_signed"]) {
      for (const int zero : row) weight.zero_point.push_back(static_cast<uint8_t>(zero + (1 << (bits - 1))));
    }
    weight.scale.assign(weight.zero_point.size(), 1.0f);
    const QuantizationArgs args{
        .num_bits = bits, .symmetric = false, .strategy = QuantizationStrategy::kGroup, .group_size = golden["group"]};
    const absl::StatusOr<std::vector<StoredTensor>> stored = EncodeWeight("pack-quantized", weight, args);
    ASSERT_TRUE(stored.ok()) << stored.status();
    const ModuleTensors tensors = Views(*stored);
    const auto expect_equal = [&](absl::string_view suffix, const Json& expected) {
      const TensorView* view = tensors.Find(suffix);
      ASSERT_NE(view, nullptr);
      ASSERT_EQ(view->shape, (Shape{static_cast<int64_t>(expected.size()), static_cast<int64_t>(expected[0].size())}));
      size_t i = 0;
      for (const Json& row : expected) {
        for (const int32_t word : row) {
          ASSERT_EQ(view->as<int32_t>()[i], word) << suffix << " word " << i;
          ++i;
        }
      }
    };
    expect_equal("weight_packed", vectors["ct_weight_packed"]);
    expect_equal("weight_zero_point", vectors["ct_weight_zero_point"]);
    const absl::StatusOr<QuantizedTensor> decoded = DecodeWeight("pack-quantized", tensors, args, {out, in});
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->code, weight.code);
    EXPECT_EQ(decoded->zero_point, weight.zero_point);
  }
}

// Words run along the output rows, eight 4-bit zero points each, and the groups lie beside each other.
TEST(PackQuantized, ZeroPointsArePackedAlongTheRows) {
  QuantizedTensor weight;
  weight.out = 9;
  weight.in = 6;
  weight.bits = 4;
  weight.group_size = 2;
  weight.code.assign(54, 1);
  weight.scale.assign(27, 0.5f);
  for (int o = 0; o < 9; ++o) {
    for (int g = 0; g < 3; ++g) weight.zero_point.push_back(static_cast<uint8_t>((o + 5 * g) % 16));
  }
  const QuantizationArgs args{.num_bits = 4, .symmetric = false, .strategy = QuantizationStrategy::kGroup, .group_size = 2};
  const std::vector<StoredTensor> stored = *EncodeWeight("pack-quantized", weight, args);
  const ModuleTensors tensors = Views(stored);
  const TensorView* zero_point = tensors.Find("weight_zero_point");
  EXPECT_EQ(zero_point->shape, (Shape{2, 3}));
  const uint32_t expected[] = {0x76543210u, 0xCBA98765u, 0x10FEDCBAu, 0x8u, 0xDu, 0x2u};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(static_cast<uint32_t>(zero_point->as<int32_t>()[i]), expected[i]) << i;
  EXPECT_EQ(DecodeWeight("pack-quantized", tensors, args, {9, 6})->zero_point, weight.zero_point);
}

// A per-tensor zero point stays an I8 number.
TEST(PackQuantized, PerTensorZeroPointIsNotPacked) {
  QuantizedTensor weight;
  weight.out = 2;
  weight.in = 4;
  weight.bits = 4;
  weight.group_size = 4;
  weight.code.assign(8, 9);
  weight.scale.assign(2, 0.5f);
  weight.zero_point.assign(2, 3);
  const QuantizationArgs args{.num_bits = 4, .symmetric = false};
  const std::vector<StoredTensor> stored = *EncodeWeight("pack-quantized", weight, args);
  const ModuleTensors tensors = Views(stored);
  const TensorView* zero_point = tensors.Find("weight_zero_point");
  EXPECT_EQ(zero_point->dtype, DType::kI8);
  EXPECT_EQ(zero_point->as<int8_t>()[0], 3 - 8);
  EXPECT_EQ(DecodeWeight("pack-quantized", tensors, args, {2, 4})->zero_point, (std::vector<uint8_t>{3, 3}));
}

TEST(PackQuantized, ShapeComesFromItsTensor) {
  Tensor shape(DType::kI64, {2});
  shape.as<int64_t>()[0] = 3;
  shape.as<int64_t>()[1] = 5;
  const absl::StatusOr<MatrixShape> read = ReadWeightShape("pack-quantized", {}, {"m", {{"weight_shape", shape.view()}}});
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->out, 3);
  EXPECT_EQ(read->in, 5);
  EXPECT_EQ(ReadWeightShape("pack-quantized", {}, {"m", {}}).status().message(), "m.weight_shape: expected I64 [2], found no such tensor");
}

TEST(PackQuantized, NamesTheTensorThatDoesNotFit) {
  QuantizedTensor weight;
  weight.out = 2;
  weight.in = 64;
  weight.bits = 4;
  weight.group_size = 32;
  weight.code.assign(128, 9);
  weight.scale.assign(4, 0.5f);
  const QuantizationArgs args{.num_bits = 4, .strategy = QuantizationStrategy::kGroup, .group_size = 32};
  const std::vector<StoredTensor> stored = *EncodeWeight("pack-quantized", weight, args);
  const MatrixShape shape{2, 64};
  EXPECT_TRUE(CheckWeight("pack-quantized", Views(stored), args, shape).ok());
  EXPECT_EQ(CheckWeight("pack-quantized", Views(stored), args, {2, 96}).message(), "m.weight_shape: expected [2, 96], found [2, 64]");

  ModuleTensors wrong = Views(stored);
  wrong.tensors[0].view.shape = {2, 7};
  EXPECT_EQ(CheckWeight("pack-quantized", wrong, args, shape).message(),
            "m.weight_packed: expected I32 [2, 8] (4-bit, in=64), found I32 [2, 7]");
  wrong = Views(stored);
  wrong.tensors[1].view.dtype = DType::kI8;
  EXPECT_EQ(CheckWeight("pack-quantized", wrong, args, shape).message(),
            "m.weight_scale: expected BF16 or F16 or F32 [2, 2] (per group), found I8 [2, 2]");
  QuantizationArgs asymmetric = args;
  asymmetric.symmetric = false;
  EXPECT_EQ(CheckWeight("pack-quantized", Views(stored), asymmetric, shape).message(),
            "m.weight_zero_point: expected I32 [1, 2] (4-bit, packed along out=2), found no such tensor");
  wrong = Views(stored);
  wrong.tensors.push_back({"weight_global_scale", wrong.tensors[1].view});
  EXPECT_THAT(CheckWeight("pack-quantized", wrong, args, shape).message(), HasSubstr("m.weight_global_scale: expected only weight_packed"));
}

}  // namespace
}  // namespace pith
