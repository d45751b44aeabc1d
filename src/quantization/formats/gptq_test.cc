#include "quantization/formats/gptq.h"

#include "gmock/gmock.h"
#include "quantization/formats/format_test_util.h"
#include "quantization/quantization_config.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

QuantizationArgs Args(int bits, bool symmetric, int group_size = 32) {
  return {.num_bits = bits, .symmetric = symmetric, .strategy = QuantizationStrategy::kGroup, .group_size = group_size};
}

// Words of qweight and of qzeros of both versions, from an independent transcription of the published packing.
TEST(Gptq, MatchesTheGoldenVectors) {
  const std::optional<Json> golden = PackingVectors();
  if (!golden.has_value()) GTEST_SKIP() << "shared golden/packing.json is absent";
  for (const int bits : {3, 4, 8}) {
    SCOPED_TRACE(bits);
    const Json& vectors = (*golden)[absl::StrCat("bits", bits)];
    const QuantizedTensor asymmetric = GoldenWeight(*golden, bits);
    QuantizedTensor symmetric = asymmetric;
    symmetric.zero_point.clear();
    struct Case {
      const char* format;
      const QuantizedTensor& weight;
      bool symmetric;
      const char* zeros;
    };
    for (const Case& c : {Case{"gptq_v2", asymmetric, false, "gptq_v2_qzeros_asym"}, Case{"gptq_v2", symmetric, true, "gptq_v2_qzeros_sym"},
                          Case{"gptq", symmetric, true, "gptq_v1_qzeros_sym"}}) {
      SCOPED_TRACE(c.zeros);
      const auto stored = EncodeWeight(c.format, c.weight, Args(bits, c.symmetric));
      ASSERT_TRUE(stored.ok()) << stored.status();
      const ModuleTensors tensors = Views(*stored);
      ExpectSameWords(tensors, "qweight", vectors["gptq_qweight"]);
      ExpectSameWords(tensors, "qzeros", vectors[c.zeros]);
      const auto decoded = DecodeWeight(c.format, tensors, Args(bits, c.symmetric), {32, 64});
      ASSERT_TRUE(decoded.ok()) << decoded.status();
      EXPECT_EQ(decoded->code, c.weight.code);
      EXPECT_EQ(decoded->zero_point, c.weight.zero_point);
    }
    // Asymmetric files of version 1 exist and are read; zero points of at least 1, here.
    std::vector<StoredTensor> stored = *EncodeWeight("gptq_v2", asymmetric, Args(bits, false));
    stored[1].tensor = WordsOf(vectors["gptq_v1_qzeros_asym_min1"]);
    const auto decoded = DecodeWeight("gptq", Views(stored), Args(bits, false), {32, 64});
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    for (int g = 0; g < 2; ++g) {
      for (int o = 0; o < 32; ++o) ASSERT_EQ(decoded->zero_point[o * 2 + g], vectors["zeros_unsigned_min1"][g][o].get<int>());
    }
  }
}

// A symmetric 4-bit weight of 8 rows and 8 columns in two groups.
QuantizedTensor SmallWeight() {
  QuantizedTensor weight{.out = 8, .in = 8, .bits = 4, .group_size = 4, .scale_dtype = DType::kF16};
  for (int i = 0; i < 64; ++i) weight.code.push_back(static_cast<uint8_t>(i % 16));
  weight.scale.assign(16, 0.5f);
  return weight;
}

// A zero point of 0 wraps to the largest field in version 1.
TEST(Gptq, ZeroPointsOfVersion1Wrap) {
  QuantizedTensor weight = SmallWeight();
  std::vector<StoredTensor> stored = *EncodeWeight("gptq", weight, Args(4, true, 4));
  for (int32_t& word : stored[1].tensor.as<int32_t>()) word = -1;
  const auto decoded = DecodeWeight("gptq", Views(stored), Args(4, false, 4), {8, 8});
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->zero_point, std::vector<uint8_t>(16, 0));
}

// Version 2 zero points under the label of version 1, and the reverse: the weights are right all the same, and the note says so.
TEST(Gptq, RecognizesWrongLabels) {
  const QuantizedTensor weight = SmallWeight();
  const QuantizationArgs args = Args(4, true, 4);
  for (const auto& [truth, label] : {std::pair("gptq", "gptq_v2"), std::pair("gptq_v2", "gptq")}) {
    const std::vector<StoredTensor> stored = *EncodeWeight(truth, weight, args);
    const auto decoded = DecodeWeight(label, Views(stored), args, {8, 8});
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->code, weight.code);
    EXPECT_TRUE(decoded->zero_point.empty());
    EXPECT_THAT(NoteOnWeight(label, Views(stored), args),
                HasSubstr(absl::StrCat("labelled ", label, ", but the zero points are those of ", truth)));
    EXPECT_EQ(NoteOnWeight(truth, Views(stored), args), "");
  }
}

TEST(Gptq, RefusesWhatItCannotHold) {
  QuantizedTensor weight = SmallWeight();
  std::vector<StoredTensor> stored = *EncodeWeight("gptq_v2", weight, Args(4, true, 4));
  // One zero point of a symmetric weight differs.
  stored[1].tensor.as<int32_t>()[1] = 0x88888878;
  const absl::Status zeros = DecodeWeight("gptq", Views(stored), Args(4, true, 4), {8, 8}).status();
  EXPECT_EQ(zeros.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(zeros.message(), "m.qzeros: expected 7 (gptq) or 8 (gptq_v2) in every field of a symmetric weight, found 7 at index 9");
  // Permuted groups.
  stored = *EncodeWeight("gptq_v2", weight, Args(4, true, 4));
  stored[3].tensor.as<int32_t>()[2] = 1;
  const absl::Status order = DecodeWeight("gptq_v2", Views(stored), Args(4, true, 4), {8, 8}).status();
  EXPECT_EQ(order.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(order.message(), HasSubstr("m.g_idx[2]: expected 0 (groups of neighbouring rows), found 1; groups permuted"));
  // A scale that F16 rounds, of a weight whose scales are F32.
  weight.scale_dtype = DType::kF32;
  weight.scale[3] = 0.1f;
  const absl::Status scale = EncodeWeight("gptq", weight, Args(4, true, 4)).status();
  EXPECT_EQ(scale.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(scale.message(), "weight format gptq: expected scales that F16 holds exactly, found 0.1 in row 1, group 1");
  // Zero points in version 1.
  weight = SmallWeight();
  weight.zero_point.assign(16, 3);
  const absl::Status asymmetric = EncodeWeight("gptq", weight, Args(4, false, 4)).status();
  EXPECT_EQ(asymmetric.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(asymmetric.message(), HasSubstr("expected symmetric codes, found zero points"));
  // Sides that end within a word, and a width nobody packs.
  EXPECT_THAT(PlanWeight("gptq", Args(4, true, 4), {8, 12}, DType::kF16).status().message(), HasSubstr("fill whole words"));
  EXPECT_THAT(PlanWeight("gptq", Args(5, true, 32), {32, 32}, DType::kF16).status().message(), HasSubstr("2, 3, 4 or 8 bits"));
}

TEST(Gptq, ReadsAndWritesItsConfig) {
  const auto config = ParseQuantizationConfig(*ParseJson(R"({"quant_method": "gptq", "bits": 4, "group_size": 64, "sym": false,
      "desc_act": false, "checkpoint_format": "gptq_v2", "meta": {"quantizer": ["a:1"]},
      "dynamic": {"-:.*\\.o_proj": {}, "+:.*\\.down_proj": {"bits": 8, "group_size": -1}}})"));
  ASSERT_TRUE(config.ok()) << config.status();
  const QuantizationScheme* q = *FindScheme(*config, "model.layers.0.self_attn.q_proj", "Linear");
  ASSERT_NE(q, nullptr);
  EXPECT_EQ(q->format, "gptq_v2");
  EXPECT_EQ(q->weights, Args(4, false, 64));
  EXPECT_EQ(*FindScheme(*config, "lm_head", "Linear"), nullptr);
  EXPECT_EQ(*FindScheme(*config, "model.layers.0.self_attn.o_proj", "Linear"), nullptr);
  const QuantizationScheme* down = *FindScheme(*config, "model.layers.0.mlp.down_proj", "Linear");
  ASSERT_NE(down, nullptr);
  EXPECT_EQ(down->weights, (QuantizationArgs{.num_bits = 8, .symmetric = false, .strategy = QuantizationStrategy::kChannel}));
  EXPECT_EQ(DumpJson(ToJson(*config)),
            R"({"bits":4,"checkpoint_format":"gptq_v2","desc_act":false,"dynamic":{"+:.*\\.down_proj":{"bits":8,"group_size":-1,)"
            R"("sym":false},"-:.*\\.o_proj":{}},"group_size":64,"lm_head":false,"quant_method":"gptq","sym":false})");
}

TEST(Gptq, RefusesBadConfigs) {
  const auto error = [](absl::string_view text) { return ParseQuantizationConfig(*ParseJson(text)).status(); };
  EXPECT_THAT(error(R"({"quant_method": "gptq", "bits": 4, "group_size": 0})").message(), HasSubstr("group size: expected a positive"));
  EXPECT_EQ(error(R"({"quant_method": "gptq", "bits": 4, "group_size": 0})").code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(error(R"({"quant_method": "gptq"})").message(), HasSubstr("\"bits\""));
  EXPECT_EQ(error(R"({"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"})").code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(error(R"({"quant_method": "gptq", "bits": 4, "dynamic": []})").code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace pith
