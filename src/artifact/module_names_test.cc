#include "artifact/module_names.h"

#include <rapidcheck.h>

#include <algorithm>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(ModuleNames, Split) {
  EXPECT_EQ(SplitTensorName("model.layers.0.mlp.up_proj.weight"),
            (std::pair<absl::string_view, absl::string_view>("model.layers.0.mlp.up_proj", "weight")));
  EXPECT_EQ(SplitTensorName("weight"), (std::pair<absl::string_view, absl::string_view>("", "weight")));
  EXPECT_EQ(SplitTensorName("a."), (std::pair<absl::string_view, absl::string_view>("a", "")));
}

TEST(ModuleNames, ReadingOrder) {
  const std::vector<std::string> order = {"model.embed_tokens",
                                          "model.layers.0.input_layernorm",
                                          "model.layers.0.self_attn.q_proj",
                                          "model.layers.0.self_attn.k_proj",
                                          "model.layers.0.self_attn.v_proj",
                                          "model.layers.0.self_attn.q_norm",
                                          "model.layers.0.self_attn.k_norm",
                                          "model.layers.0.self_attn.o_proj",
                                          "model.layers.0.post_attention_layernorm",
                                          "model.layers.0.pre_feedforward_layernorm",
                                          "model.layers.0.mlp.gate_proj",
                                          "model.layers.0.mlp.up_proj",
                                          "model.layers.0.mlp.down_proj",
                                          "model.layers.0.post_feedforward_layernorm",
                                          "model.layers.2.input_layernorm",
                                          "model.layers.2.zzz",
                                          "model.layers.10.input_layernorm",
                                          "model.layers.100.input_layernorm",
                                          "model.norm",
                                          "lm_head",
                                          "other"};
  std::vector<std::string> shuffled = order;
  std::reverse(shuffled.begin(), shuffled.end());
  std::sort(shuffled.begin(), shuffled.end(), ModuleNameLess);
  EXPECT_EQ(shuffled, order);
}

TEST(ModuleNames, OrderIsTotal) {
  const bool held = rc::check([] {
    const auto text = rc::gen::container<std::string>(rc::gen::elementOf(std::string("layers.0129ab")));
    const std::string a = *text, b = *text, c = *text;
    RC_ASSERT(!ModuleNameLess(a, a));
    RC_ASSERT(a == b || ModuleNameLess(a, b) != ModuleNameLess(b, a));
    if (ModuleNameLess(a, b) && ModuleNameLess(b, c)) RC_ASSERT(ModuleNameLess(a, c));
  });
  EXPECT_TRUE(held);
}

TEST(ModuleNames, Classes) {
  EXPECT_EQ(ModuleClassName("model.embed_tokens"), "Embedding");
  EXPECT_EQ(ModuleClassName("model.norm"), "RMSNorm");
  EXPECT_EQ(ModuleClassName("model.layers.0.post_attention_layernorm"), "RMSNorm");
  EXPECT_EQ(ModuleClassName("model.layers.0.self_attn.q_norm"), "RMSNorm");
  EXPECT_EQ(ModuleClassName("model.layers.0.self_attn.q_proj"), "Linear");
  EXPECT_EQ(ModuleClassName("lm_head"), "Linear");
}

}  // namespace
}  // namespace pith
