// One layer whose weights are so simple that its result is known: queries and keys 0 (so attention averages what it sees), v, o and
// gate/up/down multiples of the identity.
#include "model/decoder_layer.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/synthetic_artifact.h"
#include "model/weight_binding.h"

namespace pith {
namespace {

constexpr int64_t kDim = 4;

std::vector<float> Diagonal(float value) {
  std::vector<float> matrix(kDim * kDim, 0.0f);
  for (int64_t i = 0; i < kDim; ++i) matrix[i * kDim + i] = value;
  return matrix;
}

class DecoderLayerTest : public testing::Test {
 protected:
  // Two heads of two dimensions; value and mlp: factors on the identity (0 switches that half of the layer off).
  std::unique_ptr<SyntheticArtifact> MakeArtifact(const char* model_type, float value, float mlp) {
    Json config = {{"model_type", model_type},      {"vocab_size", 8},          {"hidden_size", kDim},      {"intermediate_size", kDim},
                   {"num_hidden_layers", 1},        {"num_attention_heads", 2}, {"num_key_value_heads", 2}, {"head_dim", 2},
                   {"max_position_embeddings", 64}, {"rms_norm_eps", 1e-6},     {"sliding_window", 3}};
    auto artifact = SyntheticArtifact::Random(config, 1);
    const float norm = std::string(model_type) == "gemma3_text" ? 0.0f : 1.0f;
    const auto matrix = [&](const char* name, float factor) {
      artifact->Set(absl::StrCat("model.layers.0.", name, ".weight"), {kDim, kDim}, Diagonal(factor));
    };
    matrix("self_attn.q_proj", 0.0f);
    matrix("self_attn.k_proj", 0.0f);
    matrix("self_attn.v_proj", value);
    matrix("self_attn.o_proj", 1.0f);
    matrix("mlp.gate_proj", 4.0f);
    matrix("mlp.up_proj", 1.0f);
    matrix("mlp.down_proj", mlp);
    for (const std::string& name : artifact->WeightNames()) {
      if (absl::StrContains(name, "layernorm")) artifact->Set(name + ".weight", {kDim}, std::vector<float>(kDim, norm));
    }
    return artifact;
  }

  // Runs the layer on `hidden` [rows, kDim] as one sequence from position 0 and returns the new residual stream.
  std::vector<float> Run(const ArtifactReader& artifact, const std::vector<float>& hidden) {
    const absl::StatusOr<DecoderConfig> config = ParseDecoderConfig(artifact.config());
    CHECK(config.ok());
    const LayerNormNames norms = (*FindArchitecture(config->model_type))->norms;
    const absl::StatusOr<WeightMap> map = MakeWeightMap(artifact, norms);
    CHECK(map.ok());
    absl::StatusOr<BoundDecoder> bound = BindWeights(artifact, *config, *map, context_, {});
    CHECK(bound.ok());
    bound->rotary->Reserve(64);
    if (bound->rotary_local != nullptr) bound->rotary_local->Reserve(64);

    const int64_t rows = static_cast<int64_t>(hidden.size()) / kDim;
    auto kv = KvStorage::Create({.num_layers = 1, .num_kv_heads = 2, .head_dim = 2, .num_blocks = 2});
    CHECK(kv.ok());
    BlockTable table{.blocks = {1, 0}};
    const ForwardBatch batch{.token_ids = std::vector<int32_t>(rows), .sequences = {{.num_rows = rows, .blocks = &table}}};
    Workspace workspace(*config, pool_.num_threads());
    workspace.Reserve(rows);
    for (int32_t r = 0; r < rows; ++r) workspace.positions().push_back(r);
    std::copy(hidden.begin(), hidden.end(), workspace.hidden());
    std::vector<AttentionPlan> plans = PlanAttention(batch, *config, pool_.num_threads());
    const AttentionSelection attention = SelectAttention(KvDtype::kBf16, config->head_dim, context_.isa);
    ForwardPass pass{context_, *config, batch, *kv, workspace, attention, plans};
    RunDecoderLayer(bound->layers[0], pass);
    return {workspace.hidden(), workspace.hidden() + hidden.size()};
  }

  static std::vector<double> Normalize(const float* x) {
    double squares = 0;
    for (int64_t i = 0; i < kDim; ++i) squares += static_cast<double>(x[i]) * x[i];
    std::vector<double> out;
    for (int64_t i = 0; i < kDim; ++i) out.push_back(x[i] / std::sqrt(squares / kDim + 1e-6));
    return out;
  }
  // x[t] + factor * mean of norm(x[j]) over the tokens t sees.
  static std::vector<double> AveragedValues(const std::vector<float>& x, double factor, int64_t window) {
    std::vector<double> out(x.begin(), x.end());
    for (int64_t t = 0; t < static_cast<int64_t>(x.size()) / kDim; ++t) {
      const int64_t first = window == 0 ? 0 : std::max<int64_t>(0, t - window + 1);
      for (int64_t j = first; j <= t; ++j) {
        const std::vector<double> normalized = Normalize(x.data() + j * kDim);
        for (int64_t i = 0; i < kDim; ++i) out[t * kDim + i] += factor * normalized[i] / static_cast<double>(t - first + 1);
      }
    }
    return out;
  }
  // At most four roundings to bf16 (2^-9 each) lie between the residual stream and what is added to it.
  void ExpectNear(const std::vector<float>& actual, const std::vector<double>& expected) const {
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i) {
      const double added = std::fabs(expected[i] - hidden_[i]);
      EXPECT_NEAR(actual[i], expected[i], added / 128 + 0.01) << "row " << i / kDim << " dim " << i % kDim;
    }
  }

  ThreadPool pool_{2};
  const ComputeContext context_ = MakeComputeContext(&pool_, DetectIsa());
  const std::vector<float> hidden_ = [] {
    RandomStream random(5);
    std::vector<float> x(40 * kDim);  // more rows than a block and than an attention tile
    for (float& value : x) value = random.Normal();
    return x;
  }();
};

TEST_F(DecoderLayerTest, BothHalvesOffLeavesTheResidualStream) {
  const std::vector<float> out = Run(*MakeArtifact("llama", 0.0f, 0.0f), hidden_);
  EXPECT_EQ(out, hidden_);
}

TEST_F(DecoderLayerTest, AttentionAveragesEverythingBefore) {
  ExpectNear(Run(*MakeArtifact("llama", 2.0f, 0.0f), hidden_), AveragedValues(hidden_, 2.0, 0));
}

TEST_F(DecoderLayerTest, MlpIsGatedAndAdded) {
  const std::vector<float> out = Run(*MakeArtifact("llama", 0.0f, 0.5f), hidden_);
  std::vector<double> expected(hidden_.begin(), hidden_.end());
  for (size_t r = 0; r < hidden_.size() / kDim; ++r) {
    const std::vector<double> x = Normalize(hidden_.data() + r * kDim);
    for (int64_t i = 0; i < kDim; ++i) expected[r * kDim + i] += 0.5 * (4 * x[i] / (1 + std::exp(-4 * x[i]))) * x[i];
  }
  ExpectNear(out, expected);
}

// Gemma 3: the first layers slide (window 3), and the attention's output is normalized before it is added. Q and K norms divide 0 by
// sqrt(eps), which must stay 0.
TEST_F(DecoderLayerTest, SlidingWindowAndPostNorm) {
  const std::vector<float> out = Run(*MakeArtifact("gemma3_text", 2.0f, 0.0f), hidden_);
  const std::vector<double> averaged = AveragedValues(hidden_, 2.0, 3);
  std::vector<double> expected(hidden_.begin(), hidden_.end());
  for (size_t r = 0; r < hidden_.size() / kDim; ++r) {
    std::vector<float> branch;
    for (int64_t i = 0; i < kDim; ++i) branch.push_back(static_cast<float>(averaged[r * kDim + i] - hidden_[r * kDim + i]));
    const std::vector<double> normalized = Normalize(branch.data());
    for (int64_t i = 0; i < kDim; ++i) expected[r * kDim + i] += normalized[i];
  }
  ExpectNear(out, expected);
}

}  // namespace
}  // namespace pith
