#include "artifact/loader_support.h"

#include "artifact/tiny_models.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

StoredKind Kind(const std::string& format, const QuantizationArgs& args, std::optional<QuantizationArgs> input = {}) {
  return {format, args, std::move(input)};
}

QuantizationArgs Grouped(int bits, int size, bool symmetric = true) {
  return {.num_bits = bits, .symmetric = symmetric, .strategy = QuantizationStrategy::kGroup, .group_size = size};
}

LoadFacts Facts(const StoredKind& kind, const std::string& container = "compressed-tensors") {
  LoadFacts facts{.container = container};
  facts.kinds = {kind};
  return facts;
}

std::vector<std::string> Obstacles(const LoadFacts& facts, absl::string_view loader) {
  for (const LoaderVerdict& verdict : JudgeLoaders(facts)) {
    if (verdict.loader == loader) return verdict.obstacles;
  }
  return {"no such loader"};
}

TEST(LoaderSupport, PresetsLoadInTheServers) {
  const QuantizationArgs per_token{.strategy = QuantizationStrategy::kToken, .dynamic = true};
  const QuantizationArgs fp8{.type = QuantizationType::kFloat, .strategy = QuantizationStrategy::kChannel};
  QuantizationArgs fp8_token = per_token;
  fp8_token.type = QuantizationType::kFloat;
  const LoadFacts all[] = {{.container = "huggingface"},
                           Facts(Kind("pack-quantized", Grouped(4, 64))),
                           Facts(Kind("pack-quantized", Grouped(8, 128))),
                           Facts(Kind("int-quantized", {.strategy = QuantizationStrategy::kChannel}, per_token)),
                           Facts(Kind("float-quantized", fp8, fp8_token)),
                           Facts(Kind("gptq", Grouped(4, 128)), "gptq"),
                           Facts(Kind("awq", Grouped(4, 128, false)), "awq")};
  for (const LoadFacts& facts : all) {
    for (const char* loader : {"vLLM", "SGLang", "transformers"}) EXPECT_THAT(Obstacles(facts, loader), IsEmpty()) << loader;
    EXPECT_THAT(Obstacles(facts, "llama.cpp"), ElementsAre("it loads GGUF files only"));
  }
}

TEST(LoaderSupport, EveryRuleNamesItsObstacle) {
  const QuantizationArgs per_token{.strategy = QuantizationStrategy::kToken, .dynamic = true};
  const LoadFacts asymmetric = Facts(Kind("pack-quantized", Grouped(4, 64, false)));
  EXPECT_THAT(Obstacles(asymmetric, "vLLM"), IsEmpty());
  EXPECT_THAT(Obstacles(asymmetric, "SGLang"), ElementsAre("asymmetric 4-bit weights under compressed-tensors"));
  EXPECT_THAT(Obstacles(asymmetric, "transformers"), ElementsAre(HasSubstr("packed zero points")));
  LoadFacts whole = Facts(Kind("pack-quantized", Grouped(4, 64)));
  whole.quantized_embedding = whole.quantized_head = whole.fused_parts_differ = true;
  whole.kv_cache = QuantizationArgs{.num_bits = 8};
  EXPECT_THAT(Obstacles(whole, "vLLM"),
              ElementsAre("quantized embeddings", "a quantized lm_head", "int8 KV cache as a checkpoint scheme (fp8 alone is known)",
                          "different schemes in q/k/v or gate/up, which are fused"));
  EXPECT_THAT(Obstacles(whole, "transformers"), ElementsAre("quantized embeddings"));
  whole.kv_cache->type = QuantizationType::kFloat;
  EXPECT_THAT(Obstacles(whole, "vLLM"), Not(Contains(HasSubstr("KV cache"))));
  whole.kv_cache->strategy = QuantizationStrategy::kAttnHead;
  EXPECT_THAT(Obstacles(whole, "SGLang"), Contains("KV cache scales per head (those per tensor are known)"));
  EXPECT_THAT(Obstacles(whole, "vLLM"), Not(Contains(HasSubstr("KV cache"))));
  whole.kv_cache->strategy = QuantizationStrategy::kTensor;
  EXPECT_EQ(Obstacles(whole, "SGLang").size(), 3u);
  const auto only = [](const StoredKind& kind) {
    const std::vector<std::string> obstacles = Obstacles(Facts(kind), "vLLM");
    return obstacles.size() == 1 ? obstacles[0] : absl::StrCat(obstacles.size(), " obstacles");
  };
  EXPECT_EQ(only(Kind("pack-quantized", Grouped(3, 64))), "3-bit weights (4 and 8 are known)");
  EXPECT_EQ(only(Kind("pack-quantized", Grouped(4, 48))), "groups of 48 (kernels exist for 32, 64 and 128)");
  EXPECT_EQ(only(Kind("pack-quantized", {.num_bits = 4})), "one scale for a whole matrix of weight-only integers");
  EXPECT_EQ(only(Kind("int-quantized", Grouped(8, 64))), "weight-only integers stored as int-quantized");
  EXPECT_EQ(only(Kind("int-quantized", Grouped(4, 64), per_token)), "4-bit weights with int8 activations");
  EXPECT_EQ(only(Kind("int-quantized", Grouped(8, 64), per_token)),
            "int8 activations with weights that are not symmetric per channel or tensor");
  QuantizationArgs fp8 = Grouped(8, 64);
  fp8.type = QuantizationType::kFloat;
  EXPECT_EQ(only(Kind("naive-quantized", fp8)), "fp8 weights per group");
  const QuantizationArgs block{
      .type = QuantizationType::kFloat, .strategy = QuantizationStrategy::kBlock, .block_rows = 128, .block_cols = 128};
  EXPECT_THAT(Obstacles(Facts(Kind("float-quantized", block)), "SGLang"),
              ElementsAre("fp8 blocks under compressed-tensors (those of quant_method fp8 are known)"));
  EXPECT_THAT(Obstacles(Facts(Kind("fp8-block", block), "fp8"), "SGLang"), IsEmpty());
}

TEST(LoaderSupport, ReadsTheFactsOfArtifacts) {
  const ScratchDirectory scratch;
  TinyDirectory tiny;
  tiny.Quantize();
  tiny.config["quantization_config"]["kv_cache_scheme"] = {{"num_bits", 8}, {"type", "int"}, {"dynamic", true}};
  tiny.Write(scratch.path());
  const auto facts = ReadLoadFacts(**ArtifactReader::Open(scratch.path()));
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->container, "compressed-tensors");
  ASSERT_EQ(facts->kinds.size(), 1u);
  EXPECT_EQ(facts->kinds[0], Kind("pack-quantized", Grouped(4, 32)));
  EXPECT_FALSE(facts->quantized_embedding);
  EXPECT_EQ(facts->kv_cache->type, QuantizationType::kInt);
  EXPECT_EQ(DescribeVerdicts(JudgeLoaders(*facts)),
            "loads in transformers; not in vLLM (int8 KV cache as a checkpoint scheme (fp8 alone is known)), SGLang (int8 KV cache as a "
            "checkpoint scheme (fp8 alone is known)), llama.cpp (it loads GGUF files only)");
  WriteTestFile(scratch.File("m.gguf"), TinyGguf().Build());
  const auto gguf = ReadLoadFacts(**ArtifactReader::Open(scratch.File("m.gguf")));
  EXPECT_EQ(DescribeVerdicts(JudgeLoaders(*gguf)), "loads in vLLM, SGLang, transformers, llama.cpp");
}

}  // namespace
}  // namespace pith
