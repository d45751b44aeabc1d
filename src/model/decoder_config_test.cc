#include "model/decoder_config.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/architectures/architecture.h"

namespace pith {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Json Llama() {
  return {{"model_type", "llama"},  {"vocab_size", 1000},       {"hidden_size", 64},           {"intermediate_size", 128},
          {"num_hidden_layers", 4}, {"num_attention_heads", 8}, {"num_key_value_heads", 2},    {"max_position_embeddings", 2048},
          {"rms_norm_eps", 1e-5},   {"hidden_act", "silu"},     {"tie_word_embeddings", true}, {"rope_theta", 500000.0}};
}
Json Qwen2() {
  Json json = Llama();
  json["model_type"] = "qwen2";
  return json;
}
Json Gemma3() {
  return {{"model_type", "gemma3_text"},
          {"vocab_size", 1000},
          {"hidden_size", 640},
          {"intermediate_size", 128},
          {"num_hidden_layers", 7},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 1},
          {"head_dim", 256},
          {"query_pre_attn_scalar", 64},
          {"sliding_window", 512},
          {"max_position_embeddings", 32768}};
}

std::string ErrorOf(const Json& json) { return std::string(ParseDecoderConfig(json).status().message()); }

TEST(DecoderConfig, Llama) {
  const auto c = ParseDecoderConfig(Llama());
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->model_type, "llama");
  EXPECT_EQ(c->vocab_size, 1000);
  EXPECT_EQ(c->num_layers, 4);
  EXPECT_EQ(c->num_kv_heads, 2);
  EXPECT_EQ(c->head_dim, 8);  // 64 / 8
  EXPECT_EQ(c->max_position_embeddings, 2048);
  EXPECT_FLOAT_EQ(c->rms_norm_eps, 1e-5f);
  EXPECT_FLOAT_EQ(c->attention_scale, 1.0f / std::sqrt(8.0f));
  EXPECT_TRUE(c->tie_word_embeddings);
  EXPECT_EQ(c->rope.theta, 500000.0);
  EXPECT_EQ(c->rope.scaling, "none");
  EXPECT_EQ(c->rope, c->rope_local);
  EXPECT_THAT(c->layer_window, ElementsAre(0, 0, 0, 0));
  EXPECT_FALSE(c->qkv_bias || c->o_bias || c->mlp_bias || c->qk_norm || c->norm_weight_plus_one || c->post_norms);
  EXPECT_EQ(c->kv_bytes_per_token_bf16(), 2 * 4 * 2 * 8 * 2);
}

TEST(DecoderConfig, LlamaOptions) {
  Json json = Llama();
  json["head_dim"] = 32;
  json["attention_bias"] = true;
  json["mlp_bias"] = true;
  json.erase("num_key_value_heads");
  const auto c = ParseDecoderConfig(json);
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->head_dim, 32);
  EXPECT_EQ(c->num_kv_heads, 8);
  EXPECT_TRUE(c->qkv_bias && c->o_bias && c->mlp_bias);
}

TEST(DecoderConfig, RopeScalingOldAndNewStyle) {
  Json json = Llama();
  json["rope_scaling"] = {{"rope_type", "llama3"},
                          {"factor", 32.0},
                          {"low_freq_factor", 1.0},
                          {"high_freq_factor", 4.0},
                          {"original_max_position_embeddings", 1024}};
  auto c = ParseDecoderConfig(json);
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->rope, (RopeConfig{.theta = 500000.0,
                                 .scaling = "llama3",
                                 .factor = 32.0,
                                 .low_freq_factor = 1.0,
                                 .high_freq_factor = 4.0,
                                 .original_max_position = 1024}));
  json["rope_scaling"] = {{"type", "linear"}, {"factor", 4}};
  c = ParseDecoderConfig(json);
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->rope, (RopeConfig{.theta = 500000.0, .scaling = "linear", .factor = 4.0}));
  json["rope_scaling"] = nullptr;
  json.erase("rope_theta");
  json["rope_parameters"] = {{"rope_type", "yarn"}, {"rope_theta", 1000000.0}, {"factor", 4.0}, {"original_max_position_embeddings", 512}};
  c = ParseDecoderConfig(json);
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->rope.theta, 1000000.0);
  EXPECT_EQ(c->rope.scaling, "yarn");
  EXPECT_DOUBLE_EQ(c->rope.attention_factor, 0.1 * std::log(4.0) + 1.0);
  EXPECT_EQ(c->rope.beta_fast, 32.0);
  json["rope_parameters"].update({{"mscale", 0.7}, {"mscale_all_dim", 1.3}, {"truncate", false}});
  c = ParseDecoderConfig(json);
  EXPECT_DOUBLE_EQ(c->rope.attention_factor, (0.07 * std::log(4.0) + 1.0) / (0.13 * std::log(4.0) + 1.0));
  EXPECT_FALSE(c->rope.truncate);
  json["rope_parameters"].update({{"attention_factor", 1.25}});
  EXPECT_EQ(ParseDecoderConfig(json)->rope.attention_factor, 1.25);
  json["rope_parameters"] = {{"rope_type", "yarn"}, {"original_max_position_embeddings", 512}};
  EXPECT_EQ(ParseDecoderConfig(json)->rope.factor, 4.0);  // 2048 / 512
}

TEST(DecoderConfig, Qwen2) {
  auto c = ParseDecoderConfig(Qwen2());
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_TRUE(c->qkv_bias);
  EXPECT_FALSE(c->o_bias || c->qk_norm);
  Json json = Qwen2();
  json.update({{"use_sliding_window", false}, {"sliding_window", 100}, {"max_window_layers", 2}});
  EXPECT_THAT(ParseDecoderConfig(json)->layer_window, ElementsAre(0, 0, 0, 0));
  json["use_sliding_window"] = true;
  EXPECT_THAT(ParseDecoderConfig(json)->layer_window, ElementsAre(0, 0, 100, 100));
  json["layer_types"] = {"sliding_attention", "full_attention", "full_attention", "sliding_attention"};
  EXPECT_THAT(ParseDecoderConfig(json)->layer_window, ElementsAre(100, 0, 0, 100));
  json["use_sliding_window"] = false;
  EXPECT_THAT(ErrorOf(json), AllOf(HasSubstr("layer_types[0]"), HasSubstr("no sliding_window")));
}

TEST(DecoderConfig, Qwen3) {
  Json json = Llama();
  json["model_type"] = "qwen3";
  auto c = ParseDecoderConfig(json);
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->head_dim, 128);
  EXPECT_TRUE(c->qk_norm);
  EXPECT_FALSE(c->qkv_bias || c->o_bias);
  json["head_dim"] = 48;
  json["attention_bias"] = true;
  c = ParseDecoderConfig(json);
  EXPECT_EQ(c->head_dim, 48);
  EXPECT_TRUE(c->qkv_bias && c->o_bias);
}

TEST(DecoderConfig, Gemma3) {
  auto c = ParseDecoderConfig(Gemma3());
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_THAT(c->layer_window, ElementsAre(512, 512, 512, 512, 512, 0, 512));
  EXPECT_EQ(c->rope, (RopeConfig{.theta = 1000000.0}));
  EXPECT_EQ(c->rope_local, (RopeConfig{.theta = 10000.0}));
  EXPECT_EQ(c->embedding_scale, 25.25f);  // sqrt(640) = 25.298 in bf16
  EXPECT_EQ(c->attention_scale, 0.125f);
  EXPECT_EQ(c->activation, Activation::kGeluTanh);
  EXPECT_TRUE(c->qk_norm && c->norm_weight_plus_one && c->post_norms && c->tie_word_embeddings);
  EXPECT_FALSE(c->qkv_bias);

  Json json = Gemma3();
  json.update({{"sliding_window_pattern", 2}, {"rope_theta", 2000000.0}, {"rope_local_base_freq", 5000.0}});
  json["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 8.0}};
  c = ParseDecoderConfig(json);
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_THAT(c->layer_window, ElementsAre(512, 0, 512, 0, 512, 0, 512));
  EXPECT_EQ(c->rope, (RopeConfig{.theta = 2000000.0, .scaling = "linear", .factor = 8.0}));
  EXPECT_EQ(c->rope_local, (RopeConfig{.theta = 5000.0}));

  json = Gemma3();
  json["rope_parameters"] = {{"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 3000000.0}}},
                             {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 7000.0}}}};
  c = ParseDecoderConfig(json);
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->rope, (RopeConfig{.theta = 3000000.0, .scaling = "linear", .factor = 8.0}));
  EXPECT_EQ(c->rope_local, (RopeConfig{.theta = 7000.0}));
}

TEST(DecoderConfig, Gemma3MultimodalUsesItsTextConfig) {
  Json text = Gemma3();
  text.erase("num_attention_heads");
  text.erase("num_key_value_heads");
  const Json json = {{"model_type", "gemma3"}, {"architectures", {"Gemma3ForConditionalGeneration"}}, {"text_config", text}};
  const auto c = ParseDecoderConfig(json);
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->model_type, "gemma3");
  EXPECT_EQ(c->num_heads, 8);  // the defaults of the reference class
  EXPECT_EQ(c->num_kv_heads, 4);
  EXPECT_THAT(ErrorOf({{"model_type", "gemma3"}}), HasSubstr("text_config"));
}

TEST(DecoderConfig, UnknownModelTypeListsTheKnown) {
  Json json = Llama();
  json["model_type"] = "mamba2";
  const absl::Status status = ParseDecoderConfig(json).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"mamba2\""));
  for (const Architecture& row : AllArchitectures()) EXPECT_THAT(std::string(status.message()), HasSubstr(row.model_type));
  json.erase("model_type");
  EXPECT_EQ(ParseDecoderConfig(json).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ParseDecoderConfig(Json::array()).status().code(), absl::StatusCode::kDataLoss);
}

TEST(DecoderConfig, ClassNameMustBeTheCausalModel) {
  Json json = Qwen2();
  json["architectures"] = {"Qwen2ForCausalLM"};
  EXPECT_TRUE(ParseDecoderConfig(json).ok());
  json["architectures"] = {"Qwen2ForRewardModel"};
  EXPECT_EQ(ParseDecoderConfig(json).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(ErrorOf(json), AllOf(HasSubstr("Qwen2ForCausalLM"), HasSubstr("Qwen2ForRewardModel")));
}

struct BadField {
  const char* model;  // "llama", "qwen2" or "gemma3"
  Json patch;
  absl::StatusCode code;
  const char* named;  // what the message must name
};

TEST(DecoderConfig, RefusesAbsurdOrUnsupportedValues) {
  constexpr auto kBad = absl::StatusCode::kDataLoss;
  constexpr auto kUnsupported = absl::StatusCode::kUnimplemented;
  const BadField cases[] = {
      {"llama", {{"num_hidden_layers", 513}}, kBad, "num_hidden_layers"},
      {"llama", {{"num_hidden_layers", 0}}, kBad, "num_hidden_layers"},
      {"llama", {{"num_hidden_layers", "4"}}, kBad, "num_hidden_layers"},
      {"llama", {{"num_attention_heads", 0}}, kBad, "num_attention_heads"},
      {"llama", {{"num_key_value_heads", 3}}, kBad, "num_key_value_heads"},
      {"llama", {{"num_key_value_heads", 16}}, kBad, "num_key_value_heads"},
      {"llama", {{"hidden_size", int64_t{1} << 40}}, kBad, "hidden_size"},
      {"llama", {{"hidden_size", 65}}, kBad, "head_dim"},
      {"llama", {{"hidden_size", 8}}, kBad, "head_dim"},
      {"llama", {{"head_dim", 7}}, kBad, "head_dim"},
      {"llama", {{"head_dim", 2048}}, kBad, "head_dim"},
      {"llama", {{"vocab_size", -1}}, kBad, "vocab_size"},
      {"llama", {{"intermediate_size", 1.5}}, kBad, "intermediate_size"},
      {"llama", {{"max_position_embeddings", nullptr}}, kBad, "max_position_embeddings"},
      {"llama", {{"rms_norm_eps", 0.0}}, kBad, "rms_norm_eps"},
      {"llama", {{"rope_theta", 0.0}}, kBad, "rope_theta"},
      {"llama", {{"hidden_act", "gelu"}}, kUnsupported, "hidden_act"},
      {"llama", {{"partial_rotary_factor", 0.5}}, kUnsupported, "partial_rotary_factor"},
      {"llama", {{"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 2.0}}}}, kUnsupported, "rope_scaling: rope_type"},
      {"llama", {{"rope_scaling", {{"rope_type", "linear"}}}}, kBad, "factor"},
      {"llama", {{"rope_scaling", {{"rope_type", "linear"}, {"factor", 0.0}}}}, kBad, "factor"},
      {"llama", {{"rope_scaling", "linear"}}, kBad, "rope_scaling"},
      {"llama",
       {{"rope_scaling", {{"rope_type", "llama3"}, {"factor", 8.0}, {"low_freq_factor", 4.0}, {"high_freq_factor", 4.0}}}},
       kBad,
       "high_freq_factor"},
      {"qwen2", {{"use_sliding_window", true}, {"sliding_window", 0}}, kBad, "sliding_window"},
      {"qwen2", {{"layer_types", {"full_attention"}}}, kBad, "layer_types"},
      {"qwen2",
       {{"layer_types", {"full_attention", "full_attention", "full_attention", "chunked_attention"}}},
       kUnsupported,
       "layer_types[3]"},
      {"gemma3", {{"final_logit_softcapping", 30.0}}, kUnsupported, "final_logit_softcapping"},
      {"gemma3", {{"attn_logit_softcapping", 50.0}}, kUnsupported, "attn_logit_softcapping"},
      {"gemma3", {{"use_bidirectional_attention", true}}, kUnsupported, "use_bidirectional_attention"},
      {"gemma3", {{"hidden_activation", "relu"}}, kUnsupported, "hidden_activation"},
      {"gemma3", {{"sliding_window_pattern", 0}}, kBad, "sliding_window_pattern"},
      {"gemma3", {{"query_pre_attn_scalar", 0}}, kBad, "query_pre_attn_scalar"},
  };
  for (const BadField& c : cases) {
    Json json = std::string(c.model) == "llama" ? Llama() : std::string(c.model) == "qwen2" ? Qwen2() : Gemma3();
    json.update(c.patch);
    const absl::Status status = ParseDecoderConfig(json).status();
    EXPECT_EQ(status.code(), c.code) << c.patch.dump() << ": " << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("config.json: "), HasSubstr(c.named))) << c.patch.dump();
  }
}

}  // namespace
}  // namespace pith
