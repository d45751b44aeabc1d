#include "quantization/formats/format_table.h"

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "quantization/formats/format_test_util.h"
#include "rapidcheck.h"
#include "rapidcheck/gtest.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

QuantizedTensor RandomWeight(int64_t out, int64_t in, const QuantizationArgs& args, uint64_t seed) {
  RandomStream random(seed);
  QuantizedTensor weight;
  weight.out = out;
  weight.in = in;
  weight.bits = args.num_bits;
  weight.type = args.type;
  weight.group_size = args.columns_per_scale(in);
  weight.scale_dtype = DType::kBF16;
  const bool per_tensor = args.strategy == QuantizationStrategy::kTensor;
  for (int64_t i = 0; i < out * in; ++i) {
    const auto code = static_cast<uint8_t>(random.Below(uint64_t{1} << args.num_bits));
    const bool nan = args.type == QuantizationType::kFloat && (code & 0x7F) == 0x7F;
    weight.code.push_back(nan ? 0x7E : code);
  }
  const int64_t groups = weight.num_groups();
  for (int64_t i = 0; i < out * groups; ++i) {
    const bool in_block = args.strategy == QuantizationStrategy::kBlock && i / groups % args.block_rows != 0;
    // Held exactly by BF16 and F16, and an F32 number over 127.
    const float scale = (random.Below(2) == 0 ? 1.0f : -1.0f) * static_cast<float>(1 + random.Below(127)) / 32.0f;
    weight.scale.push_back(per_tensor && i > 0 ? weight.scale[0] : in_block ? weight.scale[i - groups] : scale);
    if (args.symmetric) continue;
    weight.zero_point.push_back(per_tensor && i > 0 ? weight.zero_point[0]
                                                    : static_cast<uint8_t>(random.Below(uint64_t{1} << args.num_bits)));
  }
  return weight;
}

// Whether a format stores such weights, judged by one of 32 rows.
bool Holds(const WeightFormat& format, const QuantizationArgs& args) {
  const int64_t in = args.strategy == QuantizationStrategy::kGroup ? args.group_size : 32;
  return format.type == args.type && EncodeWeight(format.name, RandomWeight(32, in, args, 1), args).ok();
}

// All kinds of weights a format stores, per tensor, channel, group of 32 and block of 2 x 32.
std::vector<QuantizationArgs> KindsOf(const WeightFormat& format) {
  std::vector<QuantizationArgs> kinds;
  for (int bits = 2; bits <= 8; ++bits) {
    for (const bool symmetric : {true, false}) {
      for (const auto strategy :
           {QuantizationStrategy::kTensor, QuantizationStrategy::kChannel, QuantizationStrategy::kGroup, QuantizationStrategy::kBlock}) {
        QuantizationArgs args{.num_bits = bits, .type = format.type, .symmetric = symmetric, .strategy = strategy};
        if (strategy == QuantizationStrategy::kGroup) args.group_size = 32;
        if (strategy == QuantizationStrategy::kBlock) args.block_rows = 2, args.block_cols = 32;
        if (Holds(format, args)) kinds.push_back(args);
      }
    }
  }
  return kinds;
}

// Every row of the table, bit width, strategy and odd shape: what is stored is read back.
RC_GTEST_PROP(FormatTable, DecodeInvertsEncode, ()) {
  const WeightFormat* format = *rc::gen::elementOf(std::vector<const WeightFormat*>(WeightFormats().begin(), WeightFormats().end()));
  QuantizationArgs args = *rc::gen::elementOf(KindsOf(*format));
  // Other quantizers fill whole words; the formats of compressed-tensors hold matrices of any sides.
  const int64_t unit = format->method != nullptr ? 32 : 1;
  const int64_t out = *rc::gen::inRange(1, unit == 1 ? 40 : 4) * unit;
  int64_t in = *rc::gen::inRange(1, unit == 1 ? 70 : 4) * unit;
  if (args.strategy == QuantizationStrategy::kGroup) {
    args.group_size = static_cast<int>(in);
    in *= *rc::gen::inRange(1, 5);
  }
  if (args.strategy == QuantizationStrategy::kBlock) {
    args.block_rows = *rc::gen::inRange(1, 9);
    args.block_cols = static_cast<int>(in);
    in *= *rc::gen::inRange(1, 5);
  }
  const QuantizedTensor weight = RandomWeight(out, in, args, *rc::gen::arbitrary<uint64_t>());
  const absl::StatusOr<std::vector<StoredTensor>> stored = EncodeWeight(format->name, weight, args);
  RC_ASSERT(stored.ok());
  const absl::StatusOr<std::vector<StoredTensorSpec>> plan = PlanWeight(format->name, args, {out, in}, DType::kBF16);
  RC_ASSERT(plan.ok());
  RC_ASSERT(plan->size() == stored->size());
  for (size_t i = 0; i < plan->size(); ++i) {
    RC_ASSERT((*plan)[i].suffix == (*stored)[i].suffix);
    RC_ASSERT((*plan)[i].dtype == (*stored)[i].tensor.dtype());
    RC_ASSERT((*plan)[i].shape == (*stored)[i].tensor.shape());
  }
  const ModuleTensors tensors = Views(*stored);
  RC_ASSERT(tensors.Find(format->weight_suffix) != nullptr);
  RC_ASSERT(tensors.Find(format->scale_suffix) != nullptr);
  if (format->method == nullptr) RC_ASSERT((tensors.Find("weight_zero_point") == nullptr) == args.symmetric);
  const absl::StatusOr<MatrixShape> shape = ReadWeightShape(format->name, args, tensors);
  RC_ASSERT(shape.ok());
  RC_ASSERT(shape->out == out);
  RC_ASSERT(shape->in == in);
  const absl::StatusOr<QuantizedTensor> read = DecodeWeight(format->name, tensors, args, *shape);
  RC_ASSERT(read.ok());
  RC_ASSERT(read->code == weight.code);
  RC_ASSERT(read->scale == weight.scale);
  RC_ASSERT(read->zero_point == weight.zero_point);
  RC_ASSERT(read->group_size == weight.group_size);
  RC_ASSERT(read->bits == weight.bits);
  RC_ASSERT(read->type == weight.type);
  RC_ASSERT(read->format == format->name);
  RC_ASSERT(read->scale_dtype == format->scale_dtype.value_or(DType::kBF16));
}

// The same codes, scales and zero points through every format that holds them are the same weights.
TEST(FormatTable, EveryFormatGivesTheSameWeights) {
  int formats = 0;
  for (const bool symmetric : {true, false}) {
    for (const int bits : {4, 8}) {
      const QuantizationArgs grouped{.num_bits = bits, .symmetric = symmetric, .strategy = QuantizationStrategy::kGroup, .group_size = 32};
      const QuantizationArgs channel{.num_bits = bits, .symmetric = symmetric, .strategy = QuantizationStrategy::kChannel};
      for (const QuantizationArgs& args : {grouped, channel}) {
        const QuantizedTensor weight = RandomWeight(64, 96, args, 7);
        for (const WeightFormat* format : WeightFormats()) {
          QuantizedTensor source = weight;
          QuantizationArgs stored_args = args;
          if (format->name == "awq" && symmetric) {  // symmetric codes are those with the middle as zero point
            stored_args.symmetric = false;
            source.zero_point.assign(weight.scale.size(), 8);
          }
          if (!Holds(*format, stored_args)) continue;
          SCOPED_TRACE(absl::StrCat(format->name, " ", bits, symmetric ? " symmetric" : "", args == grouped ? " grouped" : ""));
          const auto stored = EncodeWeight(format->name, source, stored_args);
          ASSERT_TRUE(stored.ok()) << stored.status();
          const auto read = DecodeWeight(format->name, Views(*stored), stored_args, {64, 96});
          ASSERT_TRUE(read.ok()) << read.status();
          std::vector<float> expected(96), found(96);
          for (int64_t o = 0; o < 64; ++o) {
            weight.DequantizeRow(o, absl::MakeSpan(expected));
            read->DequantizeRow(o, absl::MakeSpan(found));
            ASSERT_EQ(found, expected) << "row " << o;
          }
          ++formats;
        }
      }
    }
  }
  // pack, int, naive in all eight cases; gptq_v2 too; gptq and awq in the four they hold; bitsandbytes in one.
  EXPECT_EQ(formats, 3 * 8 + 8 + 4 + 4 + 1);
}

// 4 bits, 32 columns: a word holds 8 codes; with a bf16 scale per row that is 4.5 bits per weight.
TEST(FormatTable, CountsStoredBits) {
  const QuantizationArgs args{.num_bits = 4, .strategy = QuantizationStrategy::kChannel};
  const QuantizedTensor weight = RandomWeight(6, 32, args, 1);
  EXPECT_DOUBLE_EQ(
      DecodeWeight("pack-quantized", Views(*EncodeWeight("pack-quantized", weight, args)), args, {6, 32})->stored_bits_per_weight, 4.5);
  EXPECT_DOUBLE_EQ(
      DecodeWeight("int-quantized", Views(*EncodeWeight("int-quantized", weight, args)), args, {6, 32})->stored_bits_per_weight, 8.5);
}

TEST(FormatTable, RefusesUnknownFormatsAndKinds) {
  const absl::Status unknown = FindWeightFormat("nvfp4-pack-quantized").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(
      unknown.message(),
      "weight format \"nvfp4-pack-quantized\": not supported; known are pack-quantized int-quantized naive-quantized float-quantized gptq "
      "gptq_v2 awq bitsandbytes fp8-block");
  const QuantizationArgs fp8{.type = QuantizationType::kFloat};
  const absl::Status kind = CheckWeight("int-quantized", {"m", {}}, fp8, {1, 1});
  EXPECT_EQ(kind.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(kind.message(), HasSubstr("weight format int-quantized: expected static 2 to 8 bit integer codes"));
  EXPECT_THAT(kind.message(), HasSubstr("found 8-bit float per tensor"));
  EXPECT_EQ(CheckWeight("pack-quantized", {"m", {}}, {.num_bits = 1}, {1, 1}).code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(CheckWeight("float-quantized", {"m", {}}, {}, {1, 1}).message(),
              HasSubstr("expected static 8 bit float codes (e4m3fn) per tensor, channel, group or block, found 8-bit int per tensor"));
  EXPECT_EQ(
      CheckWeight("int-quantized", {"m", {}}, {.strategy = QuantizationStrategy::kBlock, .block_rows = 1, .block_cols = 1}, {1, 1}).code(),
      absl::StatusCode::kUnimplemented);
  // A preset's group size before it is resolved.
  EXPECT_EQ(CheckWeight("pack-quantized", {"m", {}}, {.strategy = QuantizationStrategy::kGroup}, {1, 1}).code(),
            absl::StatusCode::kInvalidArgument);
}

// Whatever tensor is dropped, shortened or of another type, decoding says so and never reads past it.
TEST(FormatTable, EveryBrokenTensorIsRefused) {
  for (const WeightFormat* format : WeightFormats()) {
    const QuantizationArgs args = KindsOf(*format).back();
    const QuantizedTensor weight = RandomWeight(32, 96, args, 2);
    const std::vector<StoredTensor> stored = *EncodeWeight(format->name, weight, args);
    for (size_t i = 0; i < stored.size(); ++i) {
      SCOPED_TRACE(absl::StrCat(format->name, " ", stored[i].suffix));
      ModuleTensors absent = Views(stored);
      absent.tensors.erase(absent.tensors.begin() + static_cast<int64_t>(i));
      ModuleTensors shorter = Views(stored);
      if (shorter.tensors[i].view.shape.empty()) shorter.tensors[i].view.shape.push_back(1);
      shorter.tensors[i].view.shape[0] -= 1;
      ModuleTensors flat = Views(stored);
      flat.tensors[i].view.shape = {flat.tensors[i].view.num_elements(), 1, 1};
      ModuleTensors retyped = Views(stored);
      retyped.tensors[i].view.dtype = DType::kU16;
      for (const ModuleTensors* broken : {&absent, &shorter, &flat, &retyped}) {
        const bool optional = stored[i].suffix == "g_idx" || stored[i].suffix == "weight_format";
        const absl::Status status = DecodeWeight(format->name, *broken, args, {32, 96}).status();
        if (broken == &absent && optional) {
          EXPECT_TRUE(status.ok()) << status;
          continue;
        }
        EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
        EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("m.", stored[i].suffix, ": expected")));
      }
    }
  }
}

}  // namespace
}  // namespace pith
