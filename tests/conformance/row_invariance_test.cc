// Row invariance: the logits of a token are the same bits whatever else is in the batch, wherever its prefill was cut, however many
// threads run and wherever its blocks lie. For every instruction set of this CPU and every kind of weights.
#include <cstring>
#include <optional>
#include <ostream>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/synthetic_artifact.h"
#include "model/test_sequence.h"

namespace pith {
namespace {

constexpr int64_t kTokens = 100;  // two attention chunks
constexpr int64_t kVocab = 200;   // no multiple of the GEMM panel

struct Variant {
  const char* name;
  const char* model_type;
  int bits;            // 16: dense
  int64_t group_size;  // 0: per channel
  std::optional<InputQuantization> input;
};

constexpr QuantizationArgs kInt8Token{.strategy = QuantizationStrategy::kToken, .dynamic = true};
// Every row has values beyond this; as columns they are those that SetInput is told.
constexpr QuantizationArgs kOutliers{.strategy = QuantizationStrategy::kToken, .dynamic = true, .outlier_threshold = 1.5f};
constexpr QuantizationArgs kOutlierColumns{
    .strategy = QuantizationStrategy::kToken, .dynamic = true, .outlier_threshold = 1.5f, .fixed_outliers = true};
constexpr QuantizationArgs kFp8Token{.type = QuantizationType::kFloat, .strategy = QuantizationStrategy::kToken, .dynamic = true};
constexpr QuantizationArgs kFp8Tensor{.type = QuantizationType::kFloat};

void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.model_type << ", " << variant.bits << " bits"; }

const Variant kVariants[] = {
    {"llama_bf16", "llama", 16, 0},
    {"llama_w4", "llama", 4, 32},
    {"qwen2_w8", "qwen2", 8, 96},
    {"qwen3_w4_wide_group", "qwen3", 4, 96},
    {"gemma3_bf16", "gemma3_text", 16, 0},
    {"llama_w8a8", "llama", 8, 0, InputQuantization{kInt8Token}},
    {"qwen2_w4a8", "qwen2", 4, 32, InputQuantization{kInt8Token}},
    {"llama_w8a8_static", "llama", 8, 0, InputQuantization{{}, 0.05f}},
    {"llama_llm_int8", "llama", 8, 0, InputQuantization{kOutliers}},
    {"qwen2_llm_int8_columns", "qwen2", 8, 0, InputQuantization{kOutlierColumns, 0, {0, 7, 31, 64, 95}}},
    {"llama_fp8_dynamic", "llama", 8, 0, InputQuantization{kFp8Token}},
    {"qwen3_fp8_static", "qwen3", 8, 0, InputQuantization{kFp8Tensor, 0.05f}},
};

std::unique_ptr<SyntheticArtifact> MakeArtifact(const Variant& variant, int64_t window = 20) {
  Json config = {{"model_type", variant.model_type}, {"vocab_size", kVocab},       {"hidden_size", 96},        {"intermediate_size", 192},
                 {"num_hidden_layers", 2},           {"num_attention_heads", 6},   {"num_key_value_heads", 2}, {"head_dim", 32},
                 {"max_position_embeddings", 2048},  {"tie_word_embeddings", true}};
  if (std::string(variant.model_type) == "gemma3_text") config.update({{"sliding_window", window}, {"sliding_window_pattern", 2}});
  auto artifact = SyntheticArtifact::Random(config, 11);
  const QuantizationType type = variant.input.has_value() ? variant.input->args.type : QuantizationType::kInt;
  if (variant.bits < 16) artifact->QuantizeLayers(variant.bits, variant.group_size, type);
  if (variant.input.has_value()) artifact->SetInput(*variant.input);
  return artifact;
}

std::vector<int32_t> RandomTokens(int64_t count, uint64_t seed) {
  RandomStream random(seed);
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random.Below(kVocab));
  return tokens;
}

std::unique_ptr<DecoderModel> LoadModel(const ArtifactReader& artifact, ThreadPool* pool, Isa isa) {
  auto model = DecoderModel::Load(artifact, {.pool = pool, .isa = isa});
  CHECK(model.ok());
  return *std::move(model);
}

// First position whose logits differ in any bit, or -1.
int64_t FirstDifference(const std::vector<float>& a, const std::vector<float>& b) {
  CHECK_EQ(a.size(), b.size());
  for (size_t row = 0; row < a.size() / kVocab; ++row) {
    if (std::memcmp(a.data() + row * kVocab, b.data() + row * kVocab, kVocab * sizeof(float)) != 0) return static_cast<int64_t>(row);
  }
  return -1;
}

class RowInvariance : public testing::TestWithParam<Variant> {
 protected:
  std::unique_ptr<DecoderModel> Load(ThreadPool* pool, Isa isa) const { return LoadModel(*artifact_, pool, isa); }

  const std::unique_ptr<SyntheticArtifact> artifact_ = MakeArtifact(GetParam());
  const std::vector<int32_t> tokens_ = RandomTokens(kTokens, 1);
};

TEST_P(RowInvariance, ChunksThreadsAndBlocks) {
  for (const Isa isa : ThisCpu().SupportedIsas()) {
    std::vector<float> expected;
    for (const int threads : {1, 2}) {
      ThreadPool pool(threads);
      const auto model = Load(&pool, isa);
      for (const int64_t chunk : {1, 7, 16, 64, 512}) {
        TestCache cache(*model, 12, /*skip=*/chunk % 5);
        BlockTable table;
        const std::vector<float> logits = AppendInChunks(*model, cache, table, tokens_, chunk);
        if (expected.empty()) expected = logits;
        EXPECT_EQ(FirstDifference(logits, expected), -1) << IsaName(isa) << ", chunk " << chunk << ", threads " << threads;
      }
    }
  }
}

// The sequence under test among seven others that are prefilled and decoded beside it, each at its own pace.
std::vector<float> RunAmongOthers(DecoderModel& model, const std::vector<int32_t>& tokens, int64_t chunk) {
  constexpr int kOthers = 7;
  TestCache cache(model, 80);
  std::vector<BlockTable> tables(kOthers + 1);
  std::vector<std::vector<int32_t>> texts(kOthers + 1);
  for (int s = 0; s <= kOthers; ++s) texts[s] = s == 3 ? tokens : RandomTokens(40 + 13 * s, 100 + s);
  const int64_t paces[kOthers + 1] = {1, 5, 16, chunk, 2, 33, 1, 9};
  std::vector<float> collected;
  for (int64_t step = 0; tables[3].num_tokens < kTokens; ++step) {
    ForwardBatch batch;
    std::vector<int64_t> target_rows;
    for (int s = 0; s <= kOthers; ++s) {
      BlockTable& table = tables[s];
      const int64_t left = static_cast<int64_t>(texts[s].size()) - table.num_tokens;
      const int64_t rows = std::min(left, paces[s]);
      if (rows == 0 || (s != 3 && step % 3 == s % 3 && step > 0)) continue;  // done, or sits this step out
      CHECK(cache.pool.Grow(table, table.num_tokens + rows).ok());
      batch.sequences.push_back({.row_begin = batch.num_rows(), .num_rows = rows, .first_position = table.num_tokens, .blocks = &table});
      for (int64_t r = 0; r < rows; ++r) {
        if (s == 3) batch.logits_rows.push_back(static_cast<int32_t>(batch.num_rows()));
        batch.token_ids.push_back(texts[s][table.num_tokens + r]);
      }
      table.num_tokens += rows;
    }
    std::vector<float> logits(batch.logits_rows.size() * kVocab);
    CHECK(model.Forward(batch, cache.storage, absl::MakeSpan(logits)).ok());
    collected.insert(collected.end(), logits.begin(), logits.end());
  }
  return collected;
}

TEST_P(RowInvariance, BatchOfOneAndOfEight) {
  for (const Isa isa : ThisCpu().SupportedIsas()) {
    ThreadPool pool(2);
    const auto model = Load(&pool, isa);
    TestCache cache(*model, 12);
    BlockTable table;
    const std::vector<float> expected = AppendInChunks(*model, cache, table, tokens_, kTokens);
    for (const int64_t chunk : {1, 7, 16, 64, 512}) {
      EXPECT_EQ(FirstDifference(RunAmongOthers(*model, tokens_, chunk), expected), -1) << IsaName(isa) << ", chunk " << chunk;
    }
  }
}

// Integer sums are exact, and what avx2_vnni has no row for, rows of avx2 compute.
TEST_P(RowInvariance, AvxVnniGivesTheBitsOfAvx2) {
  if (!ThisCpu().Supports(Isa::kAvx2Vnni)) GTEST_SKIP() << "this CPU has no AVX-VNNI";
  ThreadPool pool(2);
  std::vector<float> expected;
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx2Vnni}) {
    const auto model = Load(&pool, isa);
    for (const int64_t chunk : {1, 64}) {
      TestCache cache(*model, 12);
      BlockTable table;
      const std::vector<float> logits = AppendInChunks(*model, cache, table, tokens_, chunk);
      if (expected.empty()) expected = logits;
      EXPECT_EQ(FirstDifference(logits, expected), -1) << IsaName(isa) << ", chunk " << chunk;
    }
  }
}

// Rolling tokens back and decoding others in their place leaves no trace of the first.
TEST_P(RowInvariance, TruncateAndContinue) {
  ThreadPool pool(2);
  for (const Isa isa : ThisCpu().SupportedIsas()) {
    const auto model = Load(&pool, isa);
    TestCache cache(*model, 12);
    BlockTable table;
    const std::vector<float> expected = AppendInChunks(*model, cache, table, tokens_, kTokens);
    cache.pool.Release(table);
    AppendInChunks(*model, cache, table, absl::MakeConstSpan(tokens_).first(50), 64);
    AppendInChunks(*model, cache, table, RandomTokens(40, 9), 5);
    cache.pool.Truncate(table, 50);
    const std::vector<float> rest = AppendInChunks(*model, cache, table, absl::MakeConstSpan(tokens_).subspan(50), 3);
    EXPECT_EQ(FirstDifference(rest, {expected.begin() + 50 * kVocab, expected.end()}), -1) << IsaName(isa);
  }
}

// The last kLastTokens of `count` tokens behind the others, in every format of the cache: the same bits in chunks of any size and with any
// number of threads, which share the tokens of a long sequence. On every instruction set.
constexpr int64_t kLastTokens = 60;

void ExpectSameBitsBehind(const ArtifactReader& artifact, int64_t count) {
  const std::vector<int32_t> tokens = RandomTokens(count, 3);
  const auto first = absl::MakeConstSpan(tokens).first(count - kLastTokens), last = absl::MakeConstSpan(tokens).last(kLastTokens);
  ThreadPool pools[] = {ThreadPool(1), ThreadPool(2), ThreadPool(3)};
  for (const Isa isa : ThisCpu().SupportedIsas()) {
    std::vector<std::unique_ptr<DecoderModel>> models;
    for (ThreadPool& pool : pools) models.push_back(LoadModel(artifact, &pool, isa));
    for (const KvDtype dtype : {KvDtype::kBf16, KvDtype::kInt8, KvDtype::kFp8}) {
      TestCache cache(*models[1], 40, /*skip=*/3, dtype);
      BlockTable table;
      AppendInChunks(*models[1], cache, table, first, 512);
      std::vector<float> expected;
      for (const auto& model : models) {
        for (const int64_t chunk : {1, 9, 64}) {
          cache.pool.Truncate(table, first.size());
          const std::vector<float> logits = AppendInChunks(*model, cache, table, last, chunk);
          if (expected.empty()) expected = logits;
          EXPECT_EQ(FirstDifference(logits, expected), -1)
              << IsaName(isa) << ", cache " << KvDtypeName(dtype) << ", chunk " << chunk << ", threads " << &model - models.data() + 1;
        }
      }
    }
  }
}

TEST_P(RowInvariance, CacheFormatsBeyondAPartition) { ExpectSameBitsBehind(*artifact_, kAttentionPartition + 40); }

// The last rows see the end of one partition and the begin of the next, and nothing of the first: a tile that threads share does not begin
// with partition 0.
TEST(RowInvarianceOfWindows, AWindowBehindTheFirstPartition) {
  ExpectSameBitsBehind(*MakeArtifact({"gemma3_bf16", "gemma3_text", 16, 0}, kAttentionPartition), 2 * kAttentionPartition + 40);
}

INSTANTIATE_TEST_SUITE_P(All, RowInvariance, testing::ValuesIn(kVariants), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace pith
