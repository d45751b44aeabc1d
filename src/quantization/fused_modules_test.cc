#include "quantization/fused_modules.h"

#include <gtest/gtest.h>

namespace pith {
namespace {

TEST(FusedModulesTest, PartsHaveTheNameOfTheWhole) {
  for (const char* part : {"q_proj", "k_proj", "v_proj"}) {
    EXPECT_EQ(FusedModuleName(std::string("model.layers.3.self_attn.") + part), "model.layers.3.self_attn.qkv_proj");
  }
  EXPECT_EQ(FusedModuleName("model.layers.12.mlp.gate_proj"), "model.layers.12.mlp.gate_up_proj");
  EXPECT_EQ(FusedModuleName("up_proj"), "gate_up_proj");
}

TEST(FusedModulesTest, OtherModulesStandAlone) {
  for (const char* name :
       {"model.layers.0.self_attn.o_proj", "model.layers.0.mlp.down_proj", "lm_head", "", "a.", "layer.my_q_proj", "q_proj.layer"}) {
    EXPECT_EQ(FusedModuleName(name), name);
  }
}

TEST(FusedModulesTest, EveryPartOfTheTableIsFound) {
  for (const FusedModules& row : FusedModuleTable()) {
    EXPECT_GE(row.parts.size(), 2u);
    for (const absl::string_view part : row.parts) EXPECT_EQ(FusedModuleName(part), row.name);
  }
}

}  // namespace
}  // namespace pith
