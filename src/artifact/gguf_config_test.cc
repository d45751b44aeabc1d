#include "artifact/gguf_config.h"

#include <cmath>

#include "artifact/gguf_tokenizer.h"
#include "artifact/tiny_models.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::HasSubstr;

absl::StatusOr<Json> Config(const TinyGguf& tiny) {
  const std::string bytes = tiny.Build();
  const auto file = GgufFile::Parse(bytes);
  if (!file.ok()) return file.status();
  const auto architecture = FindGgufArchitecture(tiny.architecture);
  ASSIGN_OR_RETURN(const GgufSizes sizes, ReadGgufSizes(*file, **architecture));
  ASSIGN_OR_RETURN(const TokenizerFiles tokenizer, ReadGgufTokenizer(file->metadata(), sizes.vocab_size));
  return MakeGgufConfig(*file, **architecture, sizes, tokenizer);
}

std::string Error(const TinyGguf& tiny) {
  const auto config = Config(tiny);
  return config.ok() ? "accepted" : std::string(config.status().message());
}

TinyGguf More(std::function<void(GgufBuilder&)> more) {
  TinyGguf tiny;
  tiny.more = std::move(more);
  return tiny;
}

TEST(GgufConfig, Llama) {
  EXPECT_EQ(*Config(TinyGguf()),
            *ParseJson(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8, "intermediate_size": 12,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 2, "vocab_size": 7, "tie_word_embeddings": true,
    "torch_dtype": "bfloat16", "max_position_embeddings": 64, "rms_norm_eps": 1e-06, "rope_theta": 100000.0, "rope_scaling": null, "hidden_act": "silu",
    "attention_bias": false, "mlp_bias": false, "bos_token_id": 0, "eos_token_id": 2})"));
}

TEST(GgufConfig, Qwen) {
  TinyGguf tiny;
  tiny.architecture = "qwen2";
  tiny.output = true;
  const Json qwen2 = *Config(tiny);
  EXPECT_EQ(qwen2["model_type"], "qwen2");
  EXPECT_EQ(qwen2["tie_word_embeddings"], false);
  EXPECT_FALSE(qwen2.contains("attention_bias"));
  tiny.architecture = "qwen3";
  const Json qwen3 = *Config(tiny);
  EXPECT_EQ(qwen3["architectures"][0], "Qwen3ForCausalLM");
  EXPECT_EQ(qwen3["attention_bias"], false);
}

TEST(GgufConfig, Gemma3) {
  TinyGguf tiny;
  tiny.architecture = "gemma3";
  tiny.layers = 8;
  tiny.head_dim = 6;
  const Json config = *Config(tiny);
  EXPECT_EQ(config["model_type"], "gemma3_text");
  ASSERT_EQ(config["layer_types"].size(), 8u);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(config["layer_types"][i], i == 5 ? "full_attention" : "sliding_attention");
  EXPECT_EQ(config["sliding_window"], 16);
  EXPECT_EQ(config["rope_local_base_freq"], 10000.0);
  EXPECT_EQ(config["query_pre_attn_scalar"], 6);
  EXPECT_EQ(config["hidden_activation"], "gelu_pytorch_tanh");
  tiny.layers = 62;  // the 27B
  EXPECT_EQ((*Config(tiny))["query_pre_attn_scalar"], 2);
  tiny.omit_keys = {"gemma3.attention.sliding_window"};
  EXPECT_THAT(Error(tiny), HasSubstr("gemma3.attention.sliding_window: expected an integer"));
}

TEST(GgufConfig, BiasesAreSeen) {
  const Json config = *Config(More([](GgufBuilder& b) {
    b.Tensor("blk.0.attn_q.bias", {8}, 0, RawBytes(std::vector<float>(8)))
        .Tensor("blk.0.ffn_gate.bias", {12}, 0, RawBytes(std::vector<float>(12)));
  }));
  EXPECT_EQ(config["attention_bias"], true);
  EXPECT_EQ(config["mlp_bias"], true);
}

TEST(GgufConfig, LinearAndYarnScaling) {
  EXPECT_EQ((*Config(More([](GgufBuilder& b) {
              b.Str("llama.rope.scaling.type", "linear").F32("llama.rope.scaling.factor", 8.0f);
            })))["rope_scaling"],
            *ParseJson(R"({"rope_type": "linear", "factor": 8.0})"));
  EXPECT_EQ((*Config(More([](GgufBuilder& b) { b.F32("llama.rope.scale_linear", 0.0f + 4.0f); })))["rope_scaling"],
            *ParseJson(R"({"rope_type": "linear", "factor": 4.0})"));
  EXPECT_EQ((*Config(More(
                [](GgufBuilder& b) { b.Str("llama.rope.scaling.type", "none").F32("llama.rope.scaling.factor", 8.0f); })))["rope_scaling"],
            nullptr);
  const auto yarn = [](auto more) {
    return Config(More([=](GgufBuilder& b) {
      b.Str("llama.rope.scaling.type", "yarn").F32("llama.rope.scaling.factor", 4.0f).U32("llama.rope.scaling.original_context_length", 32);
      more(b);
    }));
  };
  EXPECT_EQ((*yarn([](GgufBuilder&) {}))["rope_scaling"],
            *ParseJson(R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32})"));
  const Json tuned = (*yarn([](GgufBuilder& b) {
    b.F32("llama.rope.scaling.yarn_beta_fast", 16.0f).F32("llama.rope.scaling.yarn_attn_factor", 2.0f);
  }))["rope_scaling"];
  EXPECT_EQ(tuned["beta_fast"], 16.0);
  EXPECT_DOUBLE_EQ(tuned["attention_factor"].get<double>(), 2.0 * (0.1 * std::log(4.0) + 1.0));
  EXPECT_EQ(yarn([](GgufBuilder& b) { b.F32("llama.rope.scaling.yarn_ext_factor", 0.5f); }).status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Error(More([](GgufBuilder& b) { b.Str("llama.rope.scaling.type", "yarn").F32("llama.rope.scaling.factor", 4.0f); })),
              HasSubstr("original_context_length: expected an integer"));
  EXPECT_THAT(Error(More([](GgufBuilder& b) { b.Str("llama.rope.scaling.type", "longrope"); })),
              HasSubstr("expected none, linear or yarn, found \"longrope\""));
}

// Factors as Llama 3.2 ships them (theta 500000, head_dim 64, factor 32), computed in f32 as the converter does.
std::vector<float> Llama32Factors() {
  std::vector<float> factors;
  for (int i = 0; i < 64; i += 2) {
    const float frequency = 1.0f / std::pow(500000.0f, static_cast<float>(i) / 64.0f);
    const float wavelength = 2.0f * static_cast<float>(M_PI) / frequency;
    if (wavelength < 8192.0f / 4.0f) {
      factors.push_back(1.0f);
    } else if (wavelength > 8192.0f / 1.0f) {
      factors.push_back(32.0f);
    } else {
      const float smooth = (8192.0f / wavelength - 1.0f) / (4.0f - 1.0f);
      factors.push_back(1.0f / ((1.0f - smooth) / 32.0f + smooth));
    }
  }
  return factors;
}

TEST(GgufConfig, Llama3ScalingIsRecognized) {
  const auto with = [](std::vector<float> factors) {
    TinyGguf tiny;
    tiny.head_dim = 64;
    tiny.more = [factors](GgufBuilder& b) { b.Tensor("rope_freqs.weight", {static_cast<int64_t>(factors.size())}, 0, RawBytes(factors)); };
    return tiny;
  };
  // The tiny model's theta is 100000: other factors than these, which must be noticed.
  EXPECT_THAT(Error(with(Llama32Factors())), HasSubstr("(llama3 scaling by 32 of 8192 positions), found"));
  TinyGguf tiny = with(Llama32Factors());
  tiny.architecture = "llama";
  std::string bytes = tiny.Build();
  const std::string theta = GgufBuilder::String("llama.rope.freq_base") + RawBytes<uint32_t>(6);
  bytes.replace(bytes.find(theta) + theta.size(), 4, RawBytes(500000.0f));
  const auto file = GgufFile::Parse(bytes);
  ASSERT_TRUE(file.ok());
  const auto architecture = *FindGgufArchitecture("llama");
  const GgufSizes sizes = *ReadGgufSizes(*file, *architecture);
  const auto config = MakeGgufConfig(*file, *architecture, sizes, {});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ((*config)["rope_scaling"],
            *ParseJson(R"({"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                                      "original_max_position_embeddings": 8192})"));
  EXPECT_EQ((*Config(with(std::vector<float>(32, 1.0f))))["rope_scaling"], nullptr);
  EXPECT_THAT(Error(with(std::vector<float>(31, 1.0f))), HasSubstr("rope_freqs.weight: expected F32 [32], found F32 [31]"));
  EXPECT_THAT(Error(with(std::vector<float>(32, std::nanf("")))), HasSubstr("rope_freqs.weight[0]"));
}

TEST(GgufConfig, Ranges) {
  const auto replaced = [](const std::string& key, uint32_t type, const std::string& raw) {
    TinyGguf tiny;
    tiny.omit_keys = {key};
    tiny.more = [=](GgufBuilder& b) { b.Raw(key, type, raw); };
    return Error(tiny);
  };
  EXPECT_THAT(replaced("llama.context_length", 4, RawBytes<uint32_t>(0)),
              HasSubstr("llama.context_length: expected an integer in [1, 16777216]"));
  EXPECT_THAT(replaced("llama.context_length", 10, RawBytes(~uint64_t{0})), HasSubstr("llama.context_length"));
  TinyGguf tiny;
  tiny.omit_keys = {"llama.context_length"};
  EXPECT_THAT(Error(tiny), HasSubstr("llama.context_length: expected an integer in [1, 16777216], found nothing"));
}

Json Generation(const GgufBuilder& builder) {
  const std::string bytes = builder.Build();
  const auto file = GgufFile::Parse(bytes);
  EXPECT_TRUE(file.ok());
  const auto tokenizer = ReadGgufTokenizer(file->metadata(), 100);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto generation = MakeGgufGenerationConfig(file->metadata(), *tokenizer);
  EXPECT_TRUE(generation.ok()) << generation.status();
  return *generation;
}

TEST(GgufConfig, GenerationConfigListsWhatEndsAText) {
  const auto base = [](const std::vector<std::string>& tokens, const std::vector<int32_t>& types) {
    return GgufBuilder()
        .Str("tokenizer.ggml.model", "gpt2")
        .Strings("tokenizer.ggml.tokens", tokens)
        .Array("tokenizer.ggml.token_type", 5, types);
  };
  EXPECT_EQ(Generation(base({"a", "</s>"}, {1, 3}).U32("tokenizer.ggml.eos_token_id", 1).U32("tokenizer.ggml.bos_token_id", 0)),
            *ParseJson(R"({"bos_token_id": 0, "eos_token_id": 1})"));
  // Known end tokens join when they are control tokens, not when a text may contain them.
  EXPECT_EQ(Generation(base({"a", "<|im_end|>", "<|endoftext|>", "<|eot_id|>"}, {1, 3, 3, 1}).U32("tokenizer.ggml.eos_token_id", 1)),
            *ParseJson(R"({"eos_token_id": [1, 2]})"));
  EXPECT_EQ(Generation(base({"a", "b", "c", "d"}, {1, 1, 1, 1})
                           .U32("tokenizer.ggml.eos_token_id", 3)
                           .U32("tokenizer.ggml.eot_token_id", 2)
                           .U32("tokenizer.ggml.eom_token_id", 1)
                           .U32("tokenizer.ggml.padding_token_id", 0)),
            *ParseJson(R"({"eos_token_id": [3, 2, 1], "pad_token_id": 0})"));
  EXPECT_EQ(Generation(GgufBuilder()), Json::object());
}

}  // namespace
}  // namespace pith
