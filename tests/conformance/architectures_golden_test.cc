// Every architecture of the table against logits of an independent implementation (tests/oracles/make_golden_models.py), with every
// instruction set this CPU has.
//
// Error model. The reference computes in f32 on the same bf16 weights; what separates us from it is rounding to bf16 at the input of
// each linear layer and in the KV cache. One such rounding has a relative error of at most 2^-9, uniform, so u = 2^-9 / sqrt(3) in the
// root mean square, and a sum over many of them keeps that relative error. Three of these roundings per layer (the input as it reaches
// the queries and the keys, and the stored keys) change attention scores; softmax turns the error of a score, u times the score, into
// a relative error of its probability, so they count kScoreSpread-fold (how far the golden weights spread the scores, at most: 1.7^2).
// Five more (inputs of v, o, gate/up and down; stored values) and the head's input count once. Errors are independent and add in
// squares; counting each as if the whole signal passed through it, a logit's error has a standard deviation of at most
//   u * sqrt(L * (3 * kScoreSpread^2 + 5) + 1) * std(logits),
// and the largest of n normal values stays below sqrt(2 ln n) deviations most of the time; we allow one more.
#include <cmath>
#include <filesystem>
#include <set>

#include "artifact/artifact_reader.h"
#include "base/file.h"
#include "base/json.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/architectures/architecture.h"
#include "model/test_sequence.h"

namespace pith {
namespace {

const std::string& GoldenRoot() {
  static const auto* root = new std::string(absl::StrCat(PITH_SOURCE_DIR, "/tests/golden/models"));
  return *root;
}

Json ReadJson(const std::string& path) {
  const auto text = ReadFile(path);
  CHECK(text.ok());
  const auto json = ParseJson(*text);
  CHECK(json.ok());
  return *json;
}

struct Golden {
  Json config;
  std::vector<int32_t> tokens, greedy;
  std::vector<int64_t> positions;
  std::vector<std::vector<float>> logits;
  double logits_std = 0;
  std::string weights;  // path of model.safetensors
};

Golden ReadGolden(const std::string& variant) {
  const std::string directory = absl::StrCat(GoldenRoot(), "/", variant);
  const Json json = ReadJson(directory + "/golden.json");
  Golden golden{.config = ReadJson(directory + "/config.json"),
                .tokens = json["tokens"].get<std::vector<int32_t>>(),
                .greedy = json["greedy"].get<std::vector<int32_t>>(),
                .positions = json["positions"].get<std::vector<int64_t>>(),
                .logits = json["logits"].get<std::vector<std::vector<float>>>(),
                .logits_std = json["logits_std"].get<double>()};
  golden.weights = absl::StrCat(GoldenRoot(), "/", json.value("weights_of", variant), "/model.safetensors");
  return golden;
}

std::vector<std::string> Variants() { return *ListDirectory(GoldenRoot()); }

// The golden weights under another config.
absl::StatusOr<std::unique_ptr<DecoderModel>> TryToLoadWith(const Golden& golden, const Json& config, Isa isa, ThreadPool* pool) {
  const ScratchDirectory directory;
  std::filesystem::copy_file(golden.weights, directory.File("model.safetensors"));
  CHECK(WriteFileAtomically(directory.File("config.json"), DumpJson(config)).ok());
  ASSIGN_OR_RETURN(const auto reader, ArtifactReader::Open(directory.path()));
  return DecoderModel::Load(*reader, {.pool = pool, .isa = isa});
}

// How the tests see that a wrong setting is noticed.
std::unique_ptr<DecoderModel> LoadWith(const Golden& golden, const Json& config, Isa isa, ThreadPool* pool) {
  auto model = TryToLoadWith(golden, config, isa, pool);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

constexpr double kScoreSpread = 1.7 * 1.7;

double Bound(const Golden& golden, int64_t num_layers) {
  const double u = std::ldexp(1.0, -9) / std::sqrt(3.0);
  const double count = static_cast<double>(golden.logits.size() * golden.logits[0].size());
  const double deviations = std::sqrt(2.0 * std::log(count)) + 1.0;
  return deviations * u * std::sqrt(static_cast<double>(num_layers) * (3.0 * kScoreSpread * kScoreSpread + 5.0) + 1.0) * golden.logits_std;
}

// Largest difference from the golden logits.
double MaxError(DecoderModel& model, const Golden& golden) {
  TestCache cache(model, 4);
  BlockTable table;
  const std::vector<float> logits = AppendTokens(model, cache, table, golden.tokens);
  const int64_t vocab = model.config().vocab_size;
  double worst = 0;
  for (size_t i = 0; i < golden.positions.size(); ++i) {
    for (int64_t v = 0; v < vocab; ++v) {
      worst = std::max(worst, std::fabs(static_cast<double>(logits[golden.positions[i] * vocab + v]) - golden.logits[i][v]));
    }
  }
  return worst;
}

class ArchitecturesGolden : public testing::TestWithParam<std::string> {};

TEST_P(ArchitecturesGolden, LogitsAndGreedyTokensMatch) {
  const Golden golden = ReadGolden(GetParam());
  ThreadPool pool(2);
  for (const Isa isa : ThisCpu().SupportedIsas()) {
    const auto model = LoadWith(golden, golden.config, isa, &pool);
    ASSERT_NE(model, nullptr);
    const double error = MaxError(*model, golden);
    const double bound = Bound(golden, model->config().num_layers);
    EXPECT_LE(error, bound) << IsaName(isa);
    RecordProperty(absl::StrCat("max_error_over_bound_", IsaName(isa)), absl::StrCat(error / bound));
    TestCache cache(*model, 4);
    EXPECT_EQ(GreedyTokens(*model, cache, golden.tokens, static_cast<int64_t>(golden.greedy.size())), golden.greedy);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ArchitecturesGolden, testing::ValuesIn(Variants()), [](const auto& info) { return info.param; });

TEST(ArchitecturesGoldenCoverage, EveryRowOfTheTableHasAGolden) {
  std::set<std::string> model_types;
  for (const std::string& variant : Variants()) model_types.insert(ReadGolden(variant).config["model_type"].get<std::string>());
  for (const Architecture& row : AllArchitectures()) EXPECT_TRUE(model_types.contains(row.model_type)) << row.model_type;
}

struct Mutation {
  const char* name;
  const char* variant;
  Json patch;  // merged into config.json (RFC 7396)
};

// Each is a mistake an implementation could make; the golden must tell it from rounding by a wide margin.
TEST(ArchitecturesGoldenMutations, WrongSettingsAreNoticed) {
  const Mutation mutations[] = {
      {"no rope scaling", "llama_llama3", {{"rope_scaling", nullptr}}},
      {"llama3 factor", "llama_llama3", {{"rope_scaling", {{"factor", 6.0}}}}},
      {"linear factor", "llama_linear", {{"rope_scaling", {{"factor", 3.5}}}}},
      {"yarn without attention factor", "llama_yarn_bias", {{"rope_parameters", {{"attention_factor", 1.0}}}}},
      {"yarn beta", "llama_yarn_bias", {{"rope_parameters", {{"beta_slow", 0.3}}}}},
      {"rope theta", "qwen2_window", {{"rope_theta", 500000.0}}},
      {"no window", "qwen2_window", {{"use_sliding_window", false}}},
      {"window one too long", "qwen2_window", {{"sliding_window", 9}}},
      {"window in every layer", "qwen2_window", {{"max_window_layers", 0}}},
      {"norm epsilon", "qwen3", {{"rms_norm_eps", 0.01}}},
      {"window one too short", "gemma3", {{"sliding_window", 7}}},
      {"layer pattern", "gemma3", {{"sliding_window_pattern", 5}}},
      {"same rope everywhere", "gemma3", {{"rope_local_base_freq", 1000000.0}}},
      {"global rope not scaled", "gemma3", {{"rope_scaling", nullptr}}},
      {"attention scale", "gemma3", {{"query_pre_attn_scalar", 16}}},
  };
  ThreadPool pool(2);
  for (const Mutation& mutation : mutations) {
    const Golden golden = ReadGolden(mutation.variant);
    Json config = golden.config;
    config.merge_patch(mutation.patch);
    const auto model = LoadWith(golden, config, DetectIsa(), &pool);
    ASSERT_NE(model, nullptr) << mutation.name;
    const double bound = Bound(golden, model->config().num_layers);
    const double error = MaxError(*model, golden);
    EXPECT_GT(error, 2 * bound) << mutation.name;
    RecordProperty(mutation.name, absl::StrCat(error / bound));
  }
}

// Norms of queries and keys that another architecture would leave out.
TEST(ArchitecturesGoldenMutations, WeightsThatTheArchitectureDoesNotKnowAreRefused) {
  ThreadPool pool(1);
  const Golden golden = ReadGolden("qwen3");
  Json config = golden.config;
  config.merge_patch({{"model_type", "llama"}, {"architectures", nullptr}});
  const absl::Status status = TryToLoadWith(golden, config, DetectIsa(), &pool).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), testing::HasSubstr("q_norm.weight: expected only weights that config.json asks for"));
}

}  // namespace
}  // namespace pith
