#include "compression/checkpoint.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/test_util.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

StageResult MakeResult(int64_t layer) {
  StageResult result;
  Tensor tensor(DType::kI8, {2, 3});
  for (int i = 0; i < 6; ++i) tensor.as<int8_t>()[i] = static_cast<int8_t>(10 * layer + i);
  result.tensors.push_back({absl::StrCat("layer.", layer, ".weight"), std::move(tensor)});
  result.layers.push_back({.name = absl::StrCat("layer.", layer), .out = 2, .in = 3, .bits = 8, .notes = {"damping raised"}});
  result.block = BlockReport{.layer = layer, .local = {.relative = 0.5, .sqnr_db = 6, .cosine = 0.9}};
  result.scaled_inputs.push_back({"q_proj", "ratio 0.35", 0.7});
  result.kv_scales.push_back({"self_attn", {1.5f, 0.1f}, {2, 3}, {0.25f, 0.5f}, {1, 1e-3f}, {"clipped"}});
  return result;
}

class CheckpointTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Checkpoint>> Open(bool resume, const OrderedJson& identity = {{"recipe", {{"damping", 0.01}}}}) {
    return Checkpoint::Open(scratch_.File("out"), identity, resume);
  }
  ScratchDirectory scratch_;
};

TEST_F(CheckpointTest, GivesBackWhatWasSaved) {
  {
    const auto checkpoint = Open(false);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_EQ((*checkpoint)->num_done(), 0);
    ASSERT_TRUE((*checkpoint)->Save(0, MakeResult(0)).ok());
    ASSERT_TRUE((*checkpoint)->Save(1, MakeResult(1)).ok());
    EXPECT_TRUE(absl::IsInternal((*checkpoint)->Save(3, MakeResult(3))));
  }
  const auto checkpoint = Open(true);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  ASSERT_EQ((*checkpoint)->num_done(), 2);
  const auto result = (*checkpoint)->Load(1);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->tensors.size(), 1u);
  EXPECT_EQ(result->tensors[0].name, "layer.1.weight");
  EXPECT_EQ(result->tensors[0].tensor.as<int8_t>()[5], 15);
  const StageResult saved = MakeResult(1);
  EXPECT_EQ(ToJson(result->layers.at(0)), ToJson(saved.layers[0]));
  EXPECT_EQ(ToJson(*result->block), ToJson(*saved.block));
  EXPECT_EQ(ToJson(result->scaled_inputs.at(0)), ToJson(saved.scaled_inputs[0]));
  EXPECT_EQ(ToJson(result->kv_scales.at(0)), ToJson(saved.kv_scales[0]));
  EXPECT_EQ(result->kv_scales[0].key_max_abs, saved.kv_scales[0].key_max_abs);
  (*checkpoint)->Remove();
  EXPECT_FALSE(FileExists(Checkpoint::PathOf(scratch_.File("out"))));
}

TEST_F(CheckpointTest, AnUnfinishedRunIsNeverDroppedUnasked) {
  ASSERT_TRUE((*Open(false))->Save(0, MakeResult(0)).ok());
  const absl::Status refused = Open(false).status();
  EXPECT_TRUE(absl::IsPermissionDenied(refused));
  EXPECT_THAT(refused.message(), HasSubstr("--resume continues it"));
  EXPECT_EQ((*Open(true))->num_done(), 1);
}

TEST_F(CheckpointTest, AnotherRunIsNamedByWhatDiffers) {
  ASSERT_TRUE((*Open(false))->Save(0, MakeResult(0)).ok());
  const absl::Status refused = Open(true, {{"recipe", {{"damping", 0.02}}}}).status();
  EXPECT_TRUE(absl::IsPermissionDenied(refused));
  EXPECT_THAT(refused.message(), HasSubstr("recipe.damping was 0.01 and is 0.02"));
  EXPECT_THAT(Open(true, {{"recipe", OrderedJson::object()}}).status().message(), HasSubstr("recipe has other fields"));
}

// What is known of a run before its work has begun is enough to refuse it, and looking changes nothing.
TEST_F(CheckpointTest, ARunThatWillBeRefusedIsKnownBeforehand) {
  const std::string output = scratch_.File("out");
  const auto check = [&](const OrderedJson& known, bool resume) { return Checkpoint::Check(output, known, resume); };
  EXPECT_TRUE(check({{"recipe", 1}}, false).ok());
  EXPECT_FALSE(FileExists(Checkpoint::PathOf(output)));
  EXPECT_EQ(Checkpoint::BytesOf(output), 0u);
  {
    const auto checkpoint = Open(false, {{"model", "a"}, {"recipe", {{"damping", 0.01}, {"calibration", {{"seed", 1}, {"ids", "x"}}}}}});
    ASSERT_TRUE(checkpoint.ok());
    EXPECT_THAT(check(OrderedJson::object(), true).message(), HasSubstr("another process"));
    ASSERT_TRUE((*checkpoint)->Save(0, MakeResult(0)).ok());
  }
  EXPECT_GT(Checkpoint::BytesOf(output), 100u);
  EXPECT_THAT(check(OrderedJson::object(), false).message(), HasSubstr("--resume continues it"));
  EXPECT_TRUE(check(OrderedJson::object(), true).ok());
  EXPECT_TRUE(check({{"recipe", {{"calibration", {{"seed", 1}}}}}}, true).ok());
  EXPECT_THAT(check({{"recipe", {{"calibration", {{"seed", 2}}}}}}, true).message(), HasSubstr("recipe.calibration.seed was 1 and is 2"));
  EXPECT_THAT(check({{"recipe", {{"calibration", nullptr}}}}, true).message(), HasSubstr("recipe.calibration was"));
  EXPECT_TRUE(FileExists(Checkpoint::PathOf(output)));
}

// A directory in which nothing is done yet belongs to whoever made it.
TEST_F(CheckpointTest, LookingKeepsAnEmptyDirectory) {
  const std::string output = scratch_.File("out");
  ASSERT_TRUE(std::filesystem::create_directory(Checkpoint::PathOf(output)));
  EXPECT_TRUE(Checkpoint::Check(output, OrderedJson::object(), false).ok());
  EXPECT_TRUE(FileExists(Checkpoint::PathOf(output)));
}

TEST_F(CheckpointTest, AStageAtWorkIsDoneAgain) {
  {
    const auto checkpoint = Open(false);
    ASSERT_TRUE((*checkpoint)->Save(0, MakeResult(0)).ok());
    ASSERT_TRUE((*checkpoint)->Save(1, MakeResult(1)).ok());
    // As after a kill between the tensors and the reports, and in the middle of the tensors.
    ASSERT_EQ(std::remove((*checkpoint)->File("stage-00001.json").c_str()), 0);
    ASSERT_TRUE(WriteFileAtomically((*checkpoint)->File("stage-00001.safetensors"), "half").ok());
  }
  const auto checkpoint = Open(true);
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_EQ((*checkpoint)->num_done(), 1);
  EXPECT_TRUE((*checkpoint)->Save(1, MakeResult(1)).ok());
}

TEST_F(CheckpointTest, DamagedFilesAreFound) {
  const auto checkpoint = Open(false);
  ASSERT_TRUE((*checkpoint)->Save(0, MakeResult(0)).ok());
  ASSERT_TRUE(WriteFileAtomically((*checkpoint)->File("stage-00000.safetensors"), "other").ok());
  const absl::Status damaged = (*checkpoint)->Load(0).status();
  EXPECT_TRUE(absl::IsDataLoss(damaged));
  EXPECT_THAT(damaged.message(), HasSubstr("expected SHA-256"));
  ASSERT_TRUE(WriteFileAtomically((*checkpoint)->File("stage-00000.json"), "{\"layers\": 3}").ok());
  EXPECT_TRUE(absl::IsDataLoss((*checkpoint)->Load(0).status()));
}

TEST_F(CheckpointTest, OneProcessAtATime) {
  const auto first = Open(false);
  ASSERT_TRUE(first.ok());
  EXPECT_THAT(Open(true).status().message(), HasSubstr("another process"));
}

TEST_F(CheckpointTest, ARunWithoutADoneStageLeavesNothing) {
  ASSERT_TRUE(Open(false).ok());
  EXPECT_FALSE(FileExists(Checkpoint::PathOf(scratch_.File("out"))));
}

}  // namespace
}  // namespace pith
