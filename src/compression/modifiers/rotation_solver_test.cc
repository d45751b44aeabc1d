#include "compression/modifiers/rotation_solver.h"

#include <cmath>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "compression/test_difference.h"
#include "model/synthetic_artifact.h"

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

  // The whole model.
  absl::Status Rotate(const RotationOptions& options, ThreadPool& pool) {
    ASSIGN_OR_RETURN(const DecoderRotation rotation, DecoderRotation::Create(config, options));
    const auto rotate = [&](const std::string& module, DecoderPart part, int64_t layer = 0, const std::string& norm = "") -> absl::Status {
      const absl::Span<float> bias = Vec(module + ".bias");
      if (!bias.empty()) RETURN_IF_ERROR(rotation.RotateBias(part, layer, bias));
      return rotation.RotateMatrix(part, layer, Vec(norm + ".weight"), Matrix(module), pool);
    };
    RETURN_IF_ERROR(rotate("model.embed_tokens", DecoderPart::kEmbedding));
    RETURN_IF_ERROR(rotate("lm_head", DecoderPart::kReader, 0, "model.norm"));
    for (int64_t i = 0; i < config.num_layers; ++i) {
      const std::string layer = absl::StrCat("model.layers.", i, "."), attention = layer + "self_attn.", mlp = layer + "mlp.";
      for (const char* part : {"q_proj", "k_proj"}) {
        RETURN_IF_ERROR(rotate(attention + part, DecoderPart::kReader, i, layer + "input_layernorm"));
      }
      RETURN_IF_ERROR(rotate(attention + "v_proj", DecoderPart::kValue, i, layer + "input_layernorm"));
      RETURN_IF_ERROR(rotate(attention + "o_proj", DecoderPart::kAttentionOutput, i));
      for (const char* part : {"gate_proj", "up_proj"}) {
        RETURN_IF_ERROR(rotate(mlp + part, DecoderPart::kReader, i, layer + "post_attention_layernorm"));
      }
      RETURN_IF_ERROR(rotate(mlp + "down_proj", DecoderPart::kMlpOutput, i));
    }
    for (auto& [name, norm] : values) {
      if (options.residual && absl::StrContains(name, "norm") && !absl::StrContains(name, "self_attn")) {
        std::fill(norm.begin(), norm.end(), rotation.unit_norm_weight());
      }
    }
    return absl::OkStatus();
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
      ASSERT_TRUE(weights.Rotate({.seed = 5}, pool).ok());
      EXPECT_LT(RelativeDifference(before, PlainDecoder(weights).Run(kTokens)), 1e-6);
      EXPECT_GT(RelativeDifference(q_before, weights.values.at("model.layers.1.self_attn.q_proj.weight")), 0.5);
    }
  }
}

// R2 is seen in v and o only, R1 alone computes the same, and so does R2 alone, which leaves all else as it is.
TEST(RotationSolverTest, EachRotationIsDoneWhenAsked) {
  ThreadPool pool(1);
  const FloatWeights original(*SyntheticArtifact::Random(TinyConfig("llama", false), 2));
  FloatWeights both = original, residual = original, heads = original;
  const Vector before = PlainDecoder(both).Run(kTokens);
  ASSERT_TRUE(both.Rotate({.seed = 5}, pool).ok());
  ASSERT_TRUE(residual.Rotate({.heads = false, .seed = 5}, pool).ok());
  ASSERT_TRUE(heads.Rotate({.residual = false, .seed = 5}, pool).ok());
  EXPECT_LT(RelativeDifference(before, PlainDecoder(residual).Run(kTokens)), 1e-6);
  EXPECT_LT(RelativeDifference(before, PlainDecoder(heads).Run(kTokens)), 1e-6);
  for (const auto& [name, values] : both.values) {
    const bool differs = absl::StrContains(name, "v_proj") || absl::StrContains(name, "o_proj");
    EXPECT_EQ(values != residual.values.at(name), differs) << name;
    EXPECT_EQ(heads.values.at(name) != original.values.at(name), differs) << name;
  }
}

// Without signs all layers share Hadamard's own matrix, and no seed changes it.
TEST(RotationSolverTest, SignsAreDrawnWhenAsked) {
  ThreadPool pool(1);
  const FloatWeights original(*SyntheticArtifact::Random(TinyConfig("llama", false), 2));
  FloatWeights plain = original, other_seed = original, random = original, other_random = original;
  const Vector before = PlainDecoder(plain).Run(kTokens);
  ASSERT_TRUE(plain.Rotate({.random_signs = false, .seed = 5}, pool).ok());
  ASSERT_TRUE(other_seed.Rotate({.random_signs = false, .seed = 6}, pool).ok());
  ASSERT_TRUE(random.Rotate({.seed = 5}, pool).ok());
  ASSERT_TRUE(other_random.Rotate({.seed = 6}, pool).ok());
  EXPECT_EQ(plain.values, other_seed.values);
  EXPECT_NE(plain.values, random.values);
  EXPECT_NE(other_random.values, random.values);
  EXPECT_LT(RelativeDifference(before, PlainDecoder(plain).Run(kTokens)), 1e-6);
}

TEST(RotationSolverTest, SameBitsForAnyNumberOfThreads) {
  ThreadPool one(1), three(3);
  FloatWeights a(*SyntheticArtifact::Random(TinyConfig("qwen2", false), 4)), b = a;
  ASSERT_TRUE(a.Rotate({.seed = 1}, one).ok());
  ASSERT_TRUE(b.Rotate({.seed = 1}, three).ok());
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
  ASSERT_TRUE(weights.Rotate({}, pool).ok());
  EXPECT_LT(largest(), 40 / std::sqrt(48.0) + 1);
}

TEST(RotationSolverTest, Errors) {
  ThreadPool pool(1);
  Json gemma = TinyConfig("gemma3_text", true);
  gemma.update({{"query_pre_attn_scalar", 16}, {"sliding_window", 4}, {"sliding_window_pattern", 2}});
  const absl::Status norms = DecoderRotation::Create(*ParseDecoderConfig(gemma), {}).status();
  EXPECT_TRUE(absl::IsUnimplemented(norms));
  EXPECT_THAT(norms.message(), HasSubstr("norms after attention and MLP"));
  EXPECT_TRUE(DecoderRotation::Create(*ParseDecoderConfig(gemma), {.residual = false}).ok());
  DecoderConfig config = *ParseDecoderConfig(TinyConfig("llama", false));
  config.hidden_size = 50;
  EXPECT_THAT(DecoderRotation::Create(config, {}).status().message(), HasSubstr("hidden_size: rotation: expected a size of 2^k"));
  config.hidden_size = 48;
  config.head_dim = 50;
  EXPECT_THAT(DecoderRotation::Create(config, {}).status().message(), HasSubstr("head_dim"));
  EXPECT_TRUE(DecoderRotation::Create(config, {.heads = false}).ok());

  FloatWeights weights(*SyntheticArtifact::Random(TinyConfig("llama", false), 1));
  const auto values = weights.values;
  const DecoderRotation rotation = *DecoderRotation::Create(weights.config, {});
  const auto refused = [&](DecoderPart part, const std::string& module, const std::string& norm) {
    const absl::Status status = rotation.RotateMatrix(part, 0, weights.Vec(norm), weights.Matrix(module), pool);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(weights.values, values);
    return std::string(status.message());
  };
  const std::string norm = "model.norm.weight", q = "model.layers.0.self_attn.q_proj", o = "model.layers.0.self_attn.o_proj";
  EXPECT_THAT(refused(DecoderPart::kReader, o, norm), HasSubstr("expected columns: 48, found [48, 64]"));
  EXPECT_THAT(refused(DecoderPart::kMlpOutput, q, ""), HasSubstr("expected rows: 48, found [64, 48]"));
  EXPECT_THAT(refused(DecoderPart::kValue, q, norm), HasSubstr("expected 2 heads of 16 rows, found 64"));
  EXPECT_THAT(refused(DecoderPart::kAttentionOutput, "model.layers.0.mlp.down_proj", ""),
              HasSubstr("expected 4 heads of 16 columns, found 40"));
  EXPECT_THAT(refused(DecoderPart::kReader, q, ""), HasSubstr("norm: expected 48 values, found 0"));
  std::vector<float> bias(47);
  EXPECT_THAT(rotation.RotateBias(DecoderPart::kMlpOutput, 0, absl::MakeSpan(bias)).message(), HasSubstr("expected 48 values, found 47"));
}

}  // namespace
}  // namespace pith
