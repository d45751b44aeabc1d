#include "artifact/config_coverage.h"

#include "artifact/tiny_models.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::ElementsAre;
using testing::Pair;

std::unique_ptr<ArtifactReader> Open(const TinyDirectory& tiny, const ScratchDirectory& scratch) {
  tiny.Write(scratch.path());
  auto reader = ArtifactReader::Open(scratch.path());
  EXPECT_TRUE(reader.ok()) << reader.status();
  return *std::move(reader);
}

// up_proj is three tensors of group_0, q_proj a weight and a bias of an ignore entry; two norms and the embedding are no target.
TEST(ConfigCoverage, CountsWhatExplainsEveryTensor) {
  const ScratchDirectory scratch;
  TinyDirectory tiny;
  tiny.Quantize();
  const auto coverage = ReadConfigCoverage(*Open(tiny, scratch));
  ASSERT_TRUE(coverage.ok() && coverage->has_value()) << coverage.status();
  EXPECT_THAT((*coverage)->by_group, ElementsAre(Pair("group_0", 3)));
  EXPECT_THAT((*coverage)->by_ignore, ElementsAre(Pair("re:.*q_proj", 2)));
  EXPECT_EQ((*coverage)->untargeted, 3);
  EXPECT_TRUE((*coverage)->problems.empty());
  EXPECT_EQ((*coverage)->Describe(), "all 8 tensors explained once: 3 by group_0, 2 by ignore \"re:.*q_proj\", 3 not targeted");
}

// Two groups of one scheme that match equally well decide the same, but not once.
TEST(ConfigCoverage, SeesModulesThatTwoGroupsTarget) {
  const ScratchDirectory scratch;
  TinyDirectory tiny;
  tiny.Quantize();
  Json& groups = tiny.config["quantization_config"]["config_groups"];
  groups["group_1"] = groups["group_0"];
  const auto coverage = ReadConfigCoverage(*Open(tiny, scratch));
  ASSERT_TRUE(coverage.ok() && coverage->has_value()) << coverage.status();
  EXPECT_THAT((*coverage)->problems, ElementsAre("model.layers.0.mlp.up_proj: targeted by group_0 and group_1"));
  EXPECT_EQ((*coverage)->Describe(), "1 not explained once: model.layers.0.mlp.up_proj: targeted by group_0 and group_1");
}

TEST(ConfigCoverage, ScalesOfTheCacheAreExplainedByItsScheme) {
  const ScratchDirectory scratch;
  TinyDirectory tiny;
  tiny.Quantize();
  tiny.tensors.push_back(Bf16Tensor("model.layers.0.self_attn.k_scale", {1}));
  tiny.tensors.push_back(Bf16Tensor("model.layers.0.self_attn.v_scale", {1}));
  auto coverage = ReadConfigCoverage(*Open(tiny, scratch));
  ASSERT_TRUE(coverage.ok() && coverage->has_value()) << coverage.status();
  EXPECT_THAT((*coverage)->problems, ElementsAre("model.layers.0.self_attn.k_scale: a scale without kv_cache_scheme",
                                                 "model.layers.0.self_attn.v_scale: a scale without kv_cache_scheme"));
  tiny.config["quantization_config"]["kv_cache_scheme"] = {{"num_bits", 8}, {"type", "float"}};
  const ScratchDirectory declared;
  coverage = ReadConfigCoverage(*Open(tiny, declared));
  EXPECT_EQ((*coverage)->Describe(),
            "all 10 tensors explained once: 3 by group_0, 2 by ignore \"re:.*q_proj\", 2 by kv_cache_scheme, 3 not targeted");
}

TEST(ConfigCoverage, DenseModelsHaveNone) {
  const ScratchDirectory scratch;
  const auto coverage = ReadConfigCoverage(*Open(TinyDirectory(), scratch));
  ASSERT_TRUE(coverage.ok()) << coverage.status();
  EXPECT_FALSE(coverage->has_value());
}

}  // namespace
}  // namespace pith
