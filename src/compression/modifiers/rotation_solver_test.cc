#include "compression/modifiers/rotation_solver.h"

#include <cmath>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "model/decoder_model.h"
#include "model/synthetic_artifact.h"
#include "model/test_sequence.h"

namespace pith {
namespace {

using ::testing::HasSubstr;
using Vector = std::vector<double>;

const std::vector<int32_t> kTokens = {7, 3, 49, 0, 12, 12, 31, 8, 20};

Json TinyConfig(const std::string& model_type, bool tied, int64_t head_dim = 16) {
  return {{"model_type", model_type},    {"vocab_size", 50},       {"hidden_size", 48},
          {"intermediate_size", 40},     {"num_hidden_layers", 2}, {"num_attention_heads", 4},
          {"num_key_value_heads", 2},    {"head_dim", head_dim},   {"max_position_embeddings", 128},
          {"tie_word_embeddings", tied}, {"rms_norm_eps", 1e-5}};
}

// The weights of an artifact in f32, by full tensor name, with the head as a matrix of its own.
struct FloatWeights {
  explicit FloatWeights(const SyntheticArtifact& artifact) : config(*ParseDecoderConfig(artifact.config())) {
    for (const std::string& module : artifact.WeightNames()) {
      for (const char* part : {".weight", ".bias"}) Read(artifact, module + part);
    }
    if (config.tie_word_embeddings) Copy("model.embed_tokens.weight", "lm_head.weight");
  }

  void Read(const SyntheticArtifact& artifact, const std::string& name) {
    const auto weight = artifact.ReadTensor(name);
    if (!weight.ok() || !weight->has_value()) return;
    shapes[name] = (*weight)->dense->shape;
    values[name].resize(static_cast<size_t>((*weight)->dense->num_elements()));
    CHECK(ConvertToFloat(*(*weight)->dense, absl::MakeSpan(values[name])).ok());
  }
  void Copy(const std::string& from, const std::string& to) {
    values[to] = values.at(from);
    shapes[to] = shapes.at(from);
  }
  MatrixView<float> Matrix(const std::string& module) {
    const Shape& shape = shapes.at(module + ".weight");
    return {values.at(module + ".weight").data(), shape[0], shape[1]};
  }
  absl::Span<float> Vec(const std::string& name) { return values.contains(name) ? absl::MakeSpan(values.at(name)) : absl::Span<float>(); }

  RotatableDecoder Rotatable() {
    RotatableDecoder decoder{.embedding = Matrix("model.embed_tokens"), .final_norm = Vec("model.norm.weight"), .head = Matrix("lm_head")};
    for (int64_t i = 0; i < config.num_layers; ++i) {
      const std::string layer = absl::StrCat("model.layers.", i, "."), attention = layer + "self_attn.", mlp = layer + "mlp.";
      decoder.layers.push_back({.attention_norm = Vec(layer + "input_layernorm.weight"),
                                .mlp_norm = Vec(layer + "post_attention_layernorm.weight"),
                                .q = Matrix(attention + "q_proj"),
                                .k = Matrix(attention + "k_proj"),
                                .v = Matrix(attention + "v_proj"),
                                .o = Matrix(attention + "o_proj"),
                                .gate = Matrix(mlp + "gate_proj"),
                                .up = Matrix(mlp + "up_proj"),
                                .down = Matrix(mlp + "down_proj"),
                                .v_bias = Vec(attention + "v_proj.bias"),
                                .o_bias = Vec(attention + "o_proj.bias"),
                                .down_bias = Vec(mlp + "down_proj.bias")});
    }
    return decoder;
  }

  DecoderConfig config;
  std::map<std::string, std::vector<float>> values;
  std::map<std::string, Shape> shapes;
};

// A decoder written down plainly, in f64.
class PlainDecoder {
 public:
  explicit PlainDecoder(FloatWeights& weights) : w_(weights), c_(weights.config) {}

  // The logits of all tokens.
  Vector Run(const std::vector<int32_t>& tokens) {
    std::vector<Vector> x;
    for (const int32_t token : tokens) {
      const float* row = w_.Matrix("model.embed_tokens").row(token);
      x.emplace_back(row, row + c_.hidden_size);
    }
    for (int64_t i = 0; i < c_.num_layers; ++i) {
      const std::string layer = absl::StrCat("model.layers.", i, ".");
      Attention(layer, x);
      for (Vector& row : x) {
        const Vector in = Norm(row, layer + "post_attention_layernorm");
        Vector gate = Linear(in, layer + "mlp.gate_proj");
        const Vector up = Linear(in, layer + "mlp.up_proj");
        for (size_t j = 0; j < gate.size(); ++j) gate[j] = gate[j] / (1 + std::exp(-gate[j])) * up[j];
        Add(row, Linear(gate, layer + "mlp.down_proj"));
      }
    }
    Vector logits;
    for (const Vector& row : x) {
      const Vector part = Linear(Norm(row, "model.norm"), "lm_head");
      logits.insert(logits.end(), part.begin(), part.end());
    }
    return logits;
  }

 private:
  static void Add(Vector& sum, const Vector& term) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += term[i];
  }
  Vector Norm(const Vector& x, const std::string& module) {
    double square = 0;
    for (const double value : x) square += value * value;
    const double scale = 1 / std::sqrt(square / static_cast<double>(x.size()) + c_.rms_norm_eps);
    Vector y(x.size());
    for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * w_.values.at(module + ".weight")[i];
    return y;
  }
  Vector Linear(const Vector& x, const std::string& module) {
    const MatrixView<float> matrix = w_.Matrix(module);
    const absl::Span<float> bias = w_.Vec(module + ".bias");
    Vector y(static_cast<size_t>(matrix.rows));
    for (int64_t r = 0; r < matrix.rows; ++r) {
      y[r] = bias.empty() ? 0 : bias[r];
      for (int64_t k = 0; k < matrix.cols; ++k) y[r] += static_cast<double>(matrix.row(r)[k]) * x[k];
    }
    return y;
  }
  void Rope(Vector& heads, size_t position) const {
    const size_t dim = static_cast<size_t>(c_.head_dim), half = dim / 2;
    for (size_t h = 0; h < heads.size(); h += dim) {
      for (size_t i = 0; i < half; ++i) {
        const double angle = static_cast<double>(position) * std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(dim));
        const double a = heads[h + i], b = heads[h + half + i];
        heads[h + i] = a * std::cos(angle) - b * std::sin(angle);
        heads[h + half + i] = b * std::cos(angle) + a * std::sin(angle);
      }
    }
  }
  void Attention(const std::string& layer, std::vector<Vector>& x) {
    const size_t dim = static_cast<size_t>(c_.head_dim), group = static_cast<size_t>(c_.num_heads / c_.num_kv_heads);
    std::vector<Vector> keys, values;
    for (size_t t = 0; t < x.size(); ++t) {
      const Vector in = Norm(x[t], layer + "input_layernorm");
      Vector q = Linear(in, layer + "self_attn.q_proj"), k = Linear(in, layer + "self_attn.k_proj");
      Rope(q, t);
      Rope(k, t);
      keys.push_back(k);
      values.push_back(Linear(in, layer + "self_attn.v_proj"));
      Vector context(q.size(), 0.0);
      for (size_t h = 0; h < static_cast<size_t>(c_.num_heads); ++h) {
        Vector weight(t + 1, 0.0);
        double total = 0;
        for (size_t s = 0; s <= t; ++s) {
          for (size_t i = 0; i < dim; ++i) weight[s] += q[h * dim + i] * keys[s][h / group * dim + i];
          total += weight[s] = std::exp(weight[s] / std::sqrt(static_cast<double>(dim)));
        }
        for (size_t s = 0; s <= t; ++s) {
          for (size_t i = 0; i < dim; ++i) context[h * dim + i] += weight[s] / total * values[s][h / group * dim + i];
        }
      }
      pending_.push_back(Linear(context, layer + "self_attn.o_proj"));
    }
    for (size_t t = 0; t < x.size(); ++t) Add(x[t], pending_[t]);
    pending_.clear();
  }

  FloatWeights& w_;
  const DecoderConfig& c_;
  std::vector<Vector> pending_;  // outputs of attention; tokens after still read the inputs
};

template <typename A, typename B> double RelativeDifference(const A& a, const B& b) {
  double difference = 0, scale = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    scale += std::pow(static_cast<double>(a[i]), 2);
  }
  return std::sqrt(difference / scale);
}

// A weight is rounded to f32 three times, by 3e-8 of itself, and passes through two layers.
TEST(RotationSolverTest, ThePlainModelComputesTheSame) {
  ThreadPool pool(2);
  for (const bool tied : {false, true}) {
    for (const int64_t head_dim : {16, 12}) {
      Json config = TinyConfig("llama", tied, head_dim);
      config["attention_bias"] = config["mlp_bias"] = true;
      FloatWeights weights(*SyntheticArtifact::Random(config, 1));
      const Vector before = PlainDecoder(weights).Run(kTokens);
      const std::vector<float> q_before = weights.values.at("model.layers.1.self_attn.q_proj.weight");
      const auto result = RotateDecoder(weights.config, weights.Rotatable(), {.seed = 5}, pool);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_FALSE(result->tied_embeddings);
      EXPECT_LT(RelativeDifference(before, PlainDecoder(weights).Run(kTokens)), 1e-6);
      EXPECT_GT(RelativeDifference(q_before, weights.values.at("model.layers.1.self_attn.q_proj.weight")), 0.5);
      for (const auto& [name, values] : weights.values) {
        if (!absl::StrContains(name, "norm")) continue;
        EXPECT_THAT(values, testing::Each(1.0f)) << name;
      }
    }
  }
}

// R2 alone is seen in v and o only, and without it they differ by R1 alone.
TEST(RotationSolverTest, HeadsAreRotatedWhenAsked) {
  ThreadPool pool(1);
  FloatWeights with(*SyntheticArtifact::Random(TinyConfig("llama", false), 2)), without = with;
  const Vector before = PlainDecoder(with).Run(kTokens);
  ASSERT_TRUE(RotateDecoder(with.config, with.Rotatable(), {.seed = 5}, pool).ok());
  ASSERT_TRUE(RotateDecoder(without.config, without.Rotatable(), {.seed = 5, .rotate_heads = false}, pool).ok());
  EXPECT_LT(RelativeDifference(before, PlainDecoder(without).Run(kTokens)), 1e-6);
  for (const auto& [name, values] : with.values) {
    const bool differs = absl::StrContains(name, "v_proj") || absl::StrContains(name, "o_proj");
    EXPECT_EQ(values != without.values.at(name), differs) << name;
  }
}

TEST(RotationSolverTest, EmbeddingsStayTiedOnlyWithoutWeightsInTheFinalNorm) {
  ThreadPool pool(1);
  FloatWeights weights(*SyntheticArtifact::Random(TinyConfig("llama", true), 3));
  std::fill(weights.values.at("model.norm.weight").begin(), weights.values.at("model.norm.weight").end(), 1.0f);
  const auto result = RotateDecoder(weights.config, weights.Rotatable(), {}, pool);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->tied_embeddings);
  EXPECT_EQ(weights.values.at("lm_head.weight"), weights.values.at("model.embed_tokens.weight"));
}

TEST(RotationSolverTest, SameBitsForAnyNumberOfThreads) {
  ThreadPool one(1), three(3);
  FloatWeights a(*SyntheticArtifact::Random(TinyConfig("qwen2", false), 4)), b = a;
  ASSERT_TRUE(RotateDecoder(a.config, a.Rotatable(), {.seed = 1}, one).ok());
  ASSERT_TRUE(RotateDecoder(b.config, b.Rotatable(), {.seed = 1}, three).ok());
  EXPECT_EQ(a.values, b.values);
}

// An outlier channel of the residual stream is spread over all channels.
TEST(RotationSolverTest, OutlierChannelsVanish) {
  ThreadPool pool(1);
  FloatWeights weights(*SyntheticArtifact::Random(TinyConfig("llama", false), 6));
  std::vector<float>& embedding = weights.values.at("model.embed_tokens.weight");
  for (size_t row = 0; row < 50; ++row) embedding[row * 48 + 17] = 40;
  const auto largest = [&] {
    return std::fabs(*std::max_element(embedding.begin(), embedding.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); }));
  };
  EXPECT_EQ(largest(), 40);
  ASSERT_TRUE(RotateDecoder(weights.config, weights.Rotatable(), {}, pool).ok());
  EXPECT_LT(largest(), 40 / std::sqrt(48.0) + 1);
}

// The model module computes dense layers in bf16: both models are off by about the same few parts in a thousand per layer.
TEST(RotationSolverTest, TheModelModuleAgreesWithinItsRounding) {
  ThreadPool pool(2);
  for (const char* model_type : {"llama", "qwen2", "qwen3"}) {
    const auto artifact = SyntheticArtifact::Random(TinyConfig(model_type, true), 7);
    const auto logits = [&](const SyntheticArtifact& source) {
      auto model = DecoderModel::Load(source, {.pool = &pool});
      CHECK(model.ok());
      TestCache cache(**model, 4);
      BlockTable table;
      return AppendTokens(**model, cache, table, kTokens);
    };
    const std::vector<float> before = logits(*artifact);
    FloatWeights weights(*artifact);
    const auto result = RotateDecoder(weights.config, weights.Rotatable(), {.seed = 9}, pool);
    ASSERT_TRUE(result.ok()) << result.status();
    artifact->mutable_config()["tie_word_embeddings"] = result->tied_embeddings;
    for (const auto& [name, values] : weights.values) artifact->Set(name, weights.shapes.at(name), values);
    EXPECT_LT(RelativeDifference(before, logits(*artifact)), 0.03) << model_type;
    // One matrix left as it was is a different model.
    const auto original = SyntheticArtifact::Random(TinyConfig(model_type, true), 7);
    FloatWeights dense(*original);
    const std::string left_out = "model.layers.0.mlp.down_proj.weight";
    artifact->Set(left_out, dense.shapes.at(left_out), dense.values.at(left_out));
    EXPECT_GT(RelativeDifference(before, logits(*artifact)), 0.2) << model_type;
  }
}

TEST(RotationSolverTest, Errors) {
  ThreadPool pool(1);
  Json gemma = TinyConfig("gemma3_text", true);
  gemma.update({{"query_pre_attn_scalar", 16}, {"sliding_window", 4}, {"sliding_window_pattern", 2}});
  const absl::Status norms = CheckRotatable(*ParseDecoderConfig(gemma), {});
  EXPECT_TRUE(absl::IsUnimplemented(norms));
  EXPECT_THAT(norms.message(), HasSubstr("norms after attention and MLP"));
  DecoderConfig config = *ParseDecoderConfig(TinyConfig("llama", false));
  config.hidden_size = 50;
  EXPECT_THAT(CheckRotatable(config, {}).message(), HasSubstr("hidden_size: rotation: expected a size of 2^k"));
  config.hidden_size = 48;
  config.head_dim = 50;
  EXPECT_THAT(CheckRotatable(config, {}).message(), HasSubstr("head_dim"));
  EXPECT_TRUE(CheckRotatable(config, {.rotate_heads = false}).ok());

  FloatWeights weights(*SyntheticArtifact::Random(TinyConfig("llama", false), 1));
  const auto values = weights.values;
  const auto refused = [&](const RotatableDecoder& decoder) {
    const absl::Status status = RotateDecoder(weights.config, decoder, {}, pool).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(weights.values, values);
    return std::string(status.message());
  };
  RotatableDecoder decoder = weights.Rotatable();
  decoder.layers[1].o = decoder.layers[1].q;
  EXPECT_THAT(refused(decoder), HasSubstr("layers.1.o: expected [48, 64], found [64, 48]"));
  decoder = weights.Rotatable();
  decoder.layers.pop_back();
  EXPECT_THAT(refused(decoder), HasSubstr("expected 2 layers, found 1"));
  decoder = weights.Rotatable();
  decoder.final_norm = decoder.final_norm.subspan(1);
  EXPECT_THAT(refused(decoder), HasSubstr("final_norm: expected 48 values, found 47"));
}

}  // namespace
}  // namespace pith
