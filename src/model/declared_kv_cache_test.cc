#include "model/declared_kv_cache.h"

#include <cmath>
#include <cstring>
#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/synthetic_artifact.h"
#include "model/test_sequence.h"

namespace pith {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kHeads = 2, kHeadDim = 16;

Json ConfigWithFp8Cache(const std::string& strategy) {
  return {
      {"model_type", "qwen2"},
      {"vocab_size", 50},
      {"hidden_size", 32},
      {"intermediate_size", 64},
      {"num_hidden_layers", 2},
      {"num_attention_heads", 4},
      {"num_key_value_heads", kHeads},
      {"head_dim", kHeadDim},
      {"max_position_embeddings", 128},
      {"tie_word_embeddings", true},
      {"quantization_config", {{"kv_cache_scheme", {{"num_bits", 8}, {"type", "float"}, {"strategy", strategy}, {"symmetric", true}}}}}};
}

// Scales that cover what random weights give; those of layer 1 and of values are other numbers than those of layer 0 and of keys.
std::unique_ptr<SyntheticArtifact> ArtifactWithScales(bool by_head) {
  auto artifact = SyntheticArtifact::Random(ConfigWithFp8Cache(by_head ? "attn_head" : "tensor"), 1);
  for (int i = 0; i < 2; ++i) {
    const std::string attention = absl::StrCat("model.layers.", i, ".self_attn.");
    const float key = 0x1p-6f * static_cast<float>(i + 1), value = key * 1.5f;
    artifact->Set(attention + "k_scale", by_head ? Shape{kHeads, 1, 1} : Shape{1},
                  by_head ? std::vector<float>{key, 2 * key} : std::vector<float>{key});
    artifact->Set(attention + "v_scale", by_head ? Shape{kHeads, 1, 1} : Shape{1},
                  by_head ? std::vector<float>{value, 2 * value} : std::vector<float>{value});
  }
  return artifact;
}

absl::StatusOr<DeclaredKvCache> Read(const ArtifactReader& artifact) {
  return ReadDeclaredKvCache(artifact, *ParseDecoderConfig(artifact.config()));
}

class DeclaredKvCacheTest : public testing::Test {
 protected:
  std::unique_ptr<DecoderModel> Load(const ArtifactReader& artifact) {
    auto model = DecoderModel::Load(artifact, {.pool = &pool_, .isa = *SelectIsa()});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : nullptr;
  }
  // Logits of all tokens, appended so many at a time.
  std::vector<float> Logits(DecoderModel& model, KvDtype dtype, int64_t chunk = 9) {
    TestCache cache(model, 4, 0, dtype);
    BlockTable table;
    return AppendInChunks(model, cache, table, tokens_, chunk);
  }
  ThreadPool pool_{2};
  const std::vector<int32_t> tokens_ = {7, 3, 49, 0, 12, 12, 31, 8, 20};
};

TEST_F(DeclaredKvCacheTest, ReadsScalesPerTensorAndPerHead) {
  const auto tensor = Read(*ArtifactWithScales(false));
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->dtype, KvDtype::kFp8);
  ASSERT_EQ(tensor->scales.size(), 2u);
  EXPECT_THAT(tensor->scales[0].key, ElementsAre(0x1p-6f, 0x1p-6f));
  EXPECT_THAT(tensor->scales[1].value, ElementsAre(0x1.8p-5f, 0x1.8p-5f));
  const auto head = Read(*ArtifactWithScales(true));
  ASSERT_TRUE(head.ok()) << head.status();
  EXPECT_EQ(head->scheme->strategy, QuantizationStrategy::kAttnHead);
  EXPECT_THAT(head->scales[0].key, ElementsAre(0x1p-6f, 0x1p-5f));
  EXPECT_THAT(head->scales[1].key, ElementsAre(0x1p-5f, 0x1p-4f));
}

TEST_F(DeclaredKvCacheTest, ReadsTheNamesOfOlderFiles) {
  auto artifact = SyntheticArtifact::Random(ConfigWithFp8Cache("tensor"), 1);
  for (const char* name : {"0.self_attn.k_proj", "0.self_attn.v_proj", "1.self_attn.k_proj", "1.self_attn.v_proj"}) {
    artifact->Set(absl::StrCat("model.layers.", name, ".output_scale"), {1}, {0.25f});
  }
  EXPECT_THAT(Read(*artifact)->scales.at(1).value, Each(0.25f));
}

TEST_F(DeclaredKvCacheTest, ScalesOfAnotherSchemeAreLeftAlone) {
  auto artifact = ArtifactWithScales(false);
  Json& scheme = artifact->mutable_config()["quantization_config"]["kv_cache_scheme"];
  scheme["dynamic"] = true;
  EXPECT_TRUE(Read(*artifact)->scales.empty());
  scheme["dynamic"] = false;
  scheme["type"] = "int";
  EXPECT_EQ(Read(*artifact)->dtype, KvDtype::kInt8);
  EXPECT_TRUE(Read(*artifact)->scales.empty());
  artifact->mutable_config().erase("quantization_config");
  EXPECT_EQ(Read(*artifact)->dtype, KvDtype::kBf16);
  EXPECT_FALSE(Read(*artifact)->scheme.has_value());
  // Declared static, but nothing stored: found at run time.
  EXPECT_TRUE(Read(*SyntheticArtifact::Random(ConfigWithFp8Cache("tensor"), 1))->scales.empty());
}

TEST_F(DeclaredKvCacheTest, BrokenScalesAreNamed) {
  const auto message = [&](const std::function<void(SyntheticArtifact&)>& change) {
    auto artifact = ArtifactWithScales(true);
    change(*artifact);
    const absl::Status status = DecoderModel::Load(*artifact, {.pool = &pool_}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    return std::string(status.message());
  };
  const std::string name = "model.layers.1.self_attn.v_scale";
  EXPECT_THAT(message([&](auto& artifact) { artifact.Erase(name); }),
              HasSubstr(name + ": expected a scale, since there is a model.layers.0.self_attn.k_scale, found none"));
  EXPECT_THAT(message([&](auto& artifact) {
                artifact.Set(name, {3}, {1, 1, 1});
              }),
              HasSubstr(name + ": expected 1 scale or 2 (KV heads), found [3]"));
  for (const float bad : {0.0f, -1.0f, NAN, INFINITY, 0x1p-101f}) {
    EXPECT_THAT(message([&](auto& artifact) { artifact.Set(name, {2}, {1, bad}); }), HasSubstr(name + ": expected scales from 2^-100 to"));
  }
}

// Every scale in the cache is the stored one, for each layer and head.
TEST_F(DeclaredKvCacheTest, TheCacheHoldsTheStoredScales) {
  const auto artifact = ArtifactWithScales(true);
  const auto model = Load(*artifact);
  TestCache cache(*model, 4, 0, model->MakeKvSpec(1).dtype);
  BlockTable table;
  AppendTokens(*model, cache, table, tokens_);
  const KvCacheSpec& spec = cache.storage.spec();
  ASSERT_EQ(spec.dtype, KvDtype::kFp8);
  const DeclaredKvCache declared = *Read(*artifact);
  for (int64_t layer = 0; layer < 2; ++layer) {
    for (int64_t head = 0; head < kHeads; ++head) {
      const int64_t scales = table.blocks[0] * spec.block_stride() + head * spec.head_stride() + kBlockSizeTokens * kHeadDim;
      for (size_t t = 0; t < tokens_.size(); ++t) {
        float key, value;
        std::memcpy(&key, cache.storage.key(layer) + scales + 4 * t, 4);
        std::memcpy(&value, cache.storage.value(layer) + scales + 4 * t, 4);
        EXPECT_EQ(key, declared.scales[static_cast<size_t>(layer)].key[static_cast<size_t>(head)]);
        EXPECT_EQ(value, declared.scales[static_cast<size_t>(layer)].value[static_cast<size_t>(head)]);
      }
    }
  }
}

// Static scales cost little beside those of each vector, any chunk of a prompt gives the same bits, and other formats do not see them.
TEST_F(DeclaredKvCacheTest, StaticScalesChangeFp8Alone) {
  const auto with = Load(*ArtifactWithScales(true)), without = Load(*SyntheticArtifact::Random(ConfigWithFp8Cache("tensor"), 1));
  EXPECT_EQ(Logits(*with, KvDtype::kBf16), Logits(*without, KvDtype::kBf16));
  EXPECT_EQ(Logits(*with, KvDtype::kInt8), Logits(*without, KvDtype::kInt8));
  const std::vector<float> exact = Logits(*without, KvDtype::kBf16), found = Logits(*with, KvDtype::kFp8);
  EXPECT_NE(found, Logits(*without, KvDtype::kFp8));
  double error = 0, spread = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    error += std::pow(found[i] - exact[i], 2);
    spread += std::pow(exact[i], 2);
  }
  EXPECT_LT(std::sqrt(error / spread), 0.1);
  for (const int64_t chunk : {1, 2, 4}) EXPECT_EQ(Logits(*with, KvDtype::kFp8, chunk), found) << chunk;
}

// What an observer is shown is what the cache gets.
class KeyRecorder : public LayerObserver {
 public:
  void OnLinearInput(absl::string_view, const uint16_t*, int64_t, int64_t) override {}
  void OnKeysValues(const float* keys, const float* values, int64_t stride, int64_t num_rows) override {
    for (int64_t r = 0; r < num_rows; ++r) {
      for (int64_t i = 0; i < kHeads * kHeadDim; ++i) {
        seen.push_back(ToBfloat16(keys[r * stride + i]).bits);
        seen.push_back(ToBfloat16(values[r * stride + i]).bits);
      }
    }
  }
  std::vector<uint16_t> seen;  // [layer, row, channel]: key, value
};

TEST_F(DeclaredKvCacheTest, ObserversSeeWhatTheCacheStores) {
  const auto model = Load(*SyntheticArtifact::Random(ConfigWithFp8Cache("tensor"), 1));
  KeyRecorder recorder;
  model->SetObserver(&recorder);
  TestCache cache(*model, 4);
  BlockTable table;
  AppendTokens(*model, cache, table, tokens_);
  const KvCacheSpec& spec = cache.storage.spec();
  std::vector<uint16_t> stored;
  for (int64_t layer = 0; layer < 2; ++layer) {
    for (size_t t = 0; t < tokens_.size(); ++t) {
      for (int64_t i = 0; i < kHeads * kHeadDim; ++i) {
        const int64_t at = table.blocks[0] * spec.block_stride() + i / kHeadDim * spec.head_stride() +
                           2 * (static_cast<int64_t>(t) * kHeadDim + i % kHeadDim);
        uint16_t bits[2];
        std::memcpy(&bits[0], cache.storage.key(layer) + at, 2);
        std::memcpy(&bits[1], cache.storage.value(layer) + at, 2);
        stored.insert(stored.end(), bits, bits + 2);
      }
    }
  }
  EXPECT_EQ(recorder.seen, stored);
}

}  // namespace
}  // namespace pith
