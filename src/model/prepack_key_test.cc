#include "model/prepack_key.h"

#include <set>

#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/synthetic_artifact.h"

namespace pith {
namespace {

const Json kConfig = {{"model_type", "llama"},          {"vocab_size", 50},           {"hidden_size", 32},        {"intermediate_size", 64},
                      {"num_hidden_layers", 1},         {"num_attention_heads", 4},   {"num_key_value_heads", 2}, {"head_dim", 16},
                      {"max_position_embeddings", 128}, {"tie_word_embeddings", true}};

constexpr FileIdentity kIdentity = {.inode = 7, .size = 1000, .modified_ns = 5, .changed_ns = 6};

class PrepackKeyTest : public testing::Test {
 protected:
  PrepackKeyTest() { artifact_->SetWeightFiles({{"model.safetensors", kIdentity}}); }
  std::string Key(Isa isa = Isa::kScalar, WeightOnlyActivation activation = {}, const std::string& build = "1") {
    return PrepackKey(*artifact_, MakeComputeContext(&pool_, isa, activation), build);
  }
  ThreadPool pool_{1};
  const std::unique_ptr<SyntheticArtifact> artifact_ = SyntheticArtifact::Random(kConfig, 1);
};

TEST_F(PrepackKeyTest, EverythingThatDecidesTheBytesCounts) {
  const std::string key = Key();
  EXPECT_EQ(key.size(), 64u);
  EXPECT_EQ(key, Key());
  std::set<std::string> keys = {key};
  const auto expect_new = [&](const std::string& other, const char* what) { EXPECT_TRUE(keys.insert(other).second) << what; };
  expect_new(Key(Isa::kScalar, GemmActivation::kInt8), "activations");
  expect_new(Key(Isa::kScalar, {GemmActivation::kInt8, 6.0f}), "outliers");
  expect_new(Key(Isa::kScalar, {GemmActivation::kInt8, 5.0f}), "their threshold");
  expect_new(Key(Isa::kScalar, {}, "2"), "build");
  for (const Isa isa : kAllIsas) {
    if (isa != Isa::kScalar) expect_new(Key(isa), "instruction set");
  }
  for (int64_t FileIdentity::*time : {&FileIdentity::modified_ns, &FileIdentity::changed_ns}) {
    FileIdentity identity = kIdentity;
    identity.*time += 1;
    artifact_->SetWeightFiles({{"model.safetensors", identity}});
    expect_new(Key(), "time");
  }
  for (uint64_t FileIdentity::*number : {&FileIdentity::inode, &FileIdentity::size}) {
    FileIdentity identity = kIdentity;
    identity.*number += 1;
    artifact_->SetWeightFiles({{"model.safetensors", identity}});
    expect_new(Key(), "inode or size");
  }
  artifact_->SetWeightFiles({{"other.safetensors", kIdentity}});
  expect_new(Key(), "name");
  artifact_->SetWeightFiles({{"model.safetensors", kIdentity}, {"other.safetensors", kIdentity}});
  expect_new(Key(), "number of files");
  artifact_->SetWeightFiles({{"model.safetensors", kIdentity}});
  EXPECT_EQ(Key(), key);
  const TensorInfo tensor = {.name = "a.weight", .type = "BF16", .shape = {2, 3}, .stored_bytes = 12, .file = "model.safetensors"};
  artifact_->SetTensors({tensor});
  expect_new(Key(), "number of tensors");
  const auto expect_new_tensor = [&](const char* what, auto change) {
    TensorInfo other = tensor;
    change(other);
    artifact_->SetTensors({other});
    expect_new(Key(), what);
  };
  expect_new_tensor("name of a tensor", [](TensorInfo& t) { t.name = "b.weight"; });
  expect_new_tensor("type", [](TensorInfo& t) { t.type = "F16"; });
  expect_new_tensor("shape", [](TensorInfo& t) { t.shape = {3, 2}; });
  expect_new_tensor("bytes", [](TensorInfo& t) { t.stored_bytes = 13; });
  expect_new_tensor("file", [](TensorInfo& t) { t.file = "other.safetensors"; });
  artifact_->SetTensors({});
  EXPECT_EQ(Key(), key);
  artifact_->mutable_config()["rope_theta"] = 5;
  expect_new(Key(), "config");
}

TEST_F(PrepackKeyTest, AFileForEachPathInstructionSetAndKindOfActivations) {
  const auto name = [&](Isa isa, WeightOnlyActivation activation) {
    return PrepackFileName(*artifact_, MakeComputeContext(&pool_, isa, activation));
  };
  EXPECT_THAT(name(Isa::kScalar, {}), testing::MatchesRegex("synthetic\\.int16\\.scalar\\.[0-9a-f]{12}\\.safetensors"));
  EXPECT_THAT(name(Isa::kAvx512Vnni, {GemmActivation::kInt8, 6.0f}), testing::StartsWith("synthetic.llm-int8.avx512_vnni."));
  EXPECT_THAT(name(Isa::kScalar, GemmActivation::kBf16), testing::StartsWith("synthetic.bf16.scalar."));
  const std::string before = name(Isa::kScalar, {});
  artifact_->SetWeightFiles({{"other.safetensors", kIdentity}});
  EXPECT_EQ(name(Isa::kScalar, {}), before);  // a changed model takes the place of its own file
}

}  // namespace
}  // namespace pith
