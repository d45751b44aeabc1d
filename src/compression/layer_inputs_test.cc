#include "compression/layer_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pith {
namespace {

using ::testing::ElementsAre;

TEST(LayerInputsTest, NamesConsumersAndProducers) {
  DecoderConfig config;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 2;
  const WeightMap map{.norms = {.mlp_norm = "pre_feedforward_layernorm"}, .prefix = "model."};
  const std::vector<LayerInput> inputs = LayerInputs(config, map, 3);
  ASSERT_EQ(inputs.size(), 4u);
  EXPECT_THAT(inputs[0].consumers,
              ElementsAre("model.layers.3.self_attn.q_proj", "model.layers.3.self_attn.k_proj", "model.layers.3.self_attn.v_proj"));
  EXPECT_EQ(inputs[0].producer, "model.layers.3.input_layernorm");
  EXPECT_TRUE(inputs[0].producer_is_norm);
  EXPECT_THAT(inputs[1].consumers, ElementsAre("model.layers.3.self_attn.o_proj"));
  EXPECT_EQ(inputs[1].producer, "model.layers.3.self_attn.v_proj");
  EXPECT_THAT(inputs[1].tied_columns, ElementsAre(0, 1, 0, 1, 2, 3, 2, 3));  // query heads 0 and 1 read the first two values
  EXPECT_EQ(inputs[2].producer, "model.layers.3.pre_feedforward_layernorm");
  EXPECT_EQ(inputs[3].producer, "model.layers.3.mlp.up_proj");
  config.num_kv_heads = 4;
  EXPECT_TRUE(LayerInputs(config, map, 3)[1].tied_columns.empty());
}

}  // namespace
}  // namespace pith
