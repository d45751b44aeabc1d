#include "quantization/formats/gguf_encoding.h"

#include <bit>
#include <cmath>

#include "base/random.h"
#include "gmock/gmock.h"
#include "quantization/formats/format_test_util.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

const char* const kQuantized[] = {"Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q5_K", "Q6_K"};

std::vector<float> FloatsOfHex(const std::string& text) {
  std::vector<float> values;
  for (size_t i = 0; i < text.size(); i += 8) {
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(std::stoul(text.substr(i, 8), nullptr, 16))));
  }
  return values;
}

std::vector<float> RoundTrip(const GgufType& type, const std::vector<float>& x, const std::vector<float>& importance) {
  std::vector<uint8_t> bytes(static_cast<size_t>(*GgufRowBytes(type, static_cast<int64_t>(x.size()))));
  EXPECT_TRUE(EncodeGgufRow(type, x, importance, absl::MakeSpan(bytes)).ok());
  std::vector<float> decoded(x.size());
  EXPECT_TRUE(DequantizeGgufBlocks(type, bytes, absl::MakeSpan(decoded)).ok());
  return decoded;
}

double Error(const std::vector<float>& x, const std::vector<float>& y, const std::vector<float>& importance) {
  double sum = 0, weights = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double weight = importance.empty() ? 1.0 : importance[i];
    sum += weight * std::pow(static_cast<double>(x[i]) - y[i], 2);
    weights += weight;
  }
  return sum / weights;
}

// Blocks of ggml's own code: our error is at most 1.01 times its, unweighted where it knew no importance and weighted where it did.
TEST(GgufEncoding, NoWorseThanGgml) {
  const std::string path = SharedPath("golden/gguf_blocks.json");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  std::ifstream file(path);
  const Json golden = *ParseJson(std::string(std::istreambuf_iterator<char>(file), {}));
  const std::vector<float> x = FloatsOfHex(golden["x_f32"]), importance = FloatsOfHex(golden["imatrix_f32"]);
  for (const Json& c : golden["cases"]) {
    const bool weighted = c["imatrix"];
    const GgufType& type = **FindWritableGgufType(c["type"].get<std::string>());
    const std::vector<float> used = weighted ? importance : std::vector<float>();
    const std::vector<float> ours = RoundTrip(type, x, used), theirs = FloatsOfHex(c["dequant_f32"]);
    EXPECT_LE(Error(x, ours, used), 1.01 * Error(x, theirs, used)) << c["type"] << (weighted ? " weighted" : "");
  }
}

TEST(GgufEncoding, WideTypesAreClose) {
  RandomStream random(11);
  std::vector<float> x(512), importance(512);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 0.05f * random.Normal(), importance[i] = std::pow(random.Normal(), 2.0f);
  const double power = Error(x, std::vector<float>(512), {});
  const double bounds[] = {1e-4, 8e-3, 6e-3, 2e-3, 2e-3, 6e-3, 1.5e-3, 5e-4};
  for (size_t t = 0; t < std::size(kQuantized); ++t) {
    const GgufType& type = **FindWritableGgufType(kQuantized[t]);
    EXPECT_LT(Error(x, RoundTrip(type, x, {}), {}), bounds[t] * power) << type.name;
    // Knowing what matters is better for what matters.
    if (t == 0) continue;
    EXPECT_LT(Error(x, RoundTrip(type, x, importance), importance), 1.001 * Error(x, RoundTrip(type, x, {}), importance)) << type.name;
  }
}

TEST(GgufEncoding, ZerosConstantsAndExtremes) {
  for (const char* name : kQuantized) {
    SCOPED_TRACE(name);
    const GgufType& type = **FindWritableGgufType(name);
    EXPECT_EQ(RoundTrip(type, std::vector<float>(256), {}), std::vector<float>(256));
    for (const float value : {-2.0f, 0.5f, 60000.0f, 1e-40f, -3e-7f}) {
      const std::vector<float> x(256, value), decoded = RoundTrip(type, x, std::vector<float>(256));  // nothing was seen: all zeros
      for (const float y : decoded) ASSERT_NEAR(y, value, std::abs(value) * 0.07f + 1e-6f) << value;
    }
    std::vector<float> spike(256);
    spike[100] = 3.0f;
    EXPECT_NEAR(RoundTrip(type, spike, {})[100], 3.0f, 0.05f);
  }
}

TEST(GgufEncoding, FloatTypes) {
  const std::vector<float> x = {1.0f, -0.333333343f, 3e-5f};
  EXPECT_EQ(RoundTrip(**FindWritableGgufType("F32"), x, {}), x);
  EXPECT_EQ(RoundTrip(**FindWritableGgufType("BF16"), x, {})[1], RoundToBfloat16(x[1]));
  EXPECT_EQ(RoundTrip(**FindWritableGgufType("F16"), x, {})[2], ToFloat(ToFloat16(x[2])));
  std::vector<uint8_t> bytes(2);
  EXPECT_THAT(EncodeGgufRow(**FindWritableGgufType("F16"), std::vector<float>{1e6f}, {}, absl::MakeSpan(bytes)).message(),
              HasSubstr("[0]: expected a number within the range of F16, found 1e+06"));
}

TEST(GgufEncoding, RefusesWhatIsNoNumber) {
  const GgufType& type = **FindWritableGgufType("Q4_0");
  std::vector<uint8_t> bytes(18);
  for (const float bad : {NAN, -INFINITY, 1e6f}) {
    std::vector<float> x(32);
    x[7] = bad;
    const absl::Status status = EncodeGgufRow(type, x, {}, absl::MakeSpan(bytes));
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr("[7]: expected"));
  }
  EXPECT_EQ(FindWritableGgufType("IQ4_XS").status().code(), absl::StatusCode::kUnimplemented);
}

TEST(GgufEncoding, OtherTypesStandInForShortRows) {
  const auto fitting = [](const char* name, int64_t in) { return GgufTypeForRows(**FindWritableGgufType(name), in).name; };
  EXPECT_EQ(fitting("Q4_K", 512), "Q4_K");
  EXPECT_EQ(fitting("Q4_K", 576), "Q5_0");
  EXPECT_EQ(fitting("Q5_K", 576), "Q5_1");
  EXPECT_EQ(fitting("Q6_K", 576), "Q8_0");
  EXPECT_EQ(fitting("Q6_K", 48), "F16");
}

// Codes with F16 scales become blocks and come back the same, whatever multiple of 32 their groups are.
TEST(GgufEncoding, PacksCodesAsTheyAre) {
  RandomStream random(2);
  for (const auto& [name, bits] : {std::pair("Q4_0", 4), std::pair("Q8_0", 8)}) {
    const GgufType& type = **FindWritableGgufType(name);
    for (const int64_t group_size : {32, 64, 128}) {
      QuantizedTensor weight{.out = 3, .in = 128, .bits = bits, .group_size = group_size, .scale_dtype = DType::kBF16};
      for (int i = 0; i < 3 * 128; ++i) weight.code.push_back(static_cast<uint8_t>(random.Below(uint64_t{1} << bits)));
      for (int64_t i = 0; i < 3 * weight.num_groups(); ++i) weight.scale.push_back(RoundToBfloat16(0.01f + random.Normal()));
      const auto bytes = PackGgufBlocks(type, weight);
      ASSERT_TRUE(bytes.ok()) << bytes.status();
      const auto read = DecodeGgufBlocks(type, *bytes, 3, 128);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(read->code, weight.code);
      for (int64_t o = 0; o < 3; ++o) {
        for (int64_t b = 0; b < 4; ++b) ASSERT_EQ(read->scale[o * 4 + b], weight.scale[(o * 128 + b * 32) / group_size]);
      }
    }
  }
  QuantizedTensor weight{.out = 1, .in = 32, .bits = 4, .group_size = 16};
  const GgufType& q4_0 = **FindWritableGgufType("Q4_0");
  EXPECT_THAT(PackGgufBlocks(q4_0, weight).status().message(), HasSubstr("expected groups of whole blocks of 32"));
  weight.group_size = 32;
  weight.code.assign(32, 0);
  weight.scale = {0.1f};
  EXPECT_THAT(PackGgufBlocks(q4_0, weight).status().message(), HasSubstr("expected scales that F16 holds exactly"));
  weight.zero_point = {3};
  EXPECT_THAT(PackGgufBlocks(q4_0, weight).status().message(), HasSubstr("found zero points"));
  EXPECT_NE(RefuseGgufPacking(q4_0, 8, QuantizationType::kInt, 32, true), nullptr);
  EXPECT_NE(RefuseGgufPacking(**FindWritableGgufType("Q4_K"), 4, QuantizationType::kInt, 32, true), nullptr);
}

}  // namespace
}  // namespace pith
