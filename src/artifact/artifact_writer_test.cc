#include "artifact/artifact_writer.h"

#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "artifact/model_card.h"
#include "artifact/safetensors_shards.h"
#include "artifact/tiny_models.h"
#include "base/sha256.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<uint8_t> Fill(size_t n, uint8_t value) { return std::vector<uint8_t>(n, value); }

std::vector<TensorSpec> Specs() {
  return {{"model.layers.10.a.weight", DType::kU8, {8}},
          {"model.layers.2.a.weight", DType::kU8, {8}},
          {"lm_head.weight", DType::kU8, {8}},
          {"model.embed_tokens.weight", DType::kU8, {8}}};
}

TEST(ArtifactWriter, WritesADirectoryWithAManifest) {
  const ScratchDirectory scratch;
  WriteTestFile(scratch.File("tokenizer.json"), "{ \"odd\":  1 }");
  WriteTestFile(scratch.File("LICENSE"), "text");
  WriteTestFile(scratch.File("README.md"), "not copied");
  const std::string out = scratch.File("out");
  auto created = ArtifactWriter::Create(out);
  ASSERT_TRUE(created.ok()) << created.status();
  ArtifactWriter& writer = **created;
  ASSERT_TRUE(writer.DeclareTensors(Specs()).ok());
  for (const TensorSpec& spec : Specs()) ASSERT_TRUE(writer.WriteTensor(spec.name, Fill(8, static_cast<uint8_t>(spec.name.size()))).ok());
  ASSERT_TRUE(writer.AddJson("config.json", {{"b", 1}, {"a", {1, 2}}}).ok());
  ASSERT_TRUE(writer.CopySideFiles(scratch.path()).ok());
  EXPECT_FALSE(FileExists(out));
  Manifest manifest;
  manifest.pith_version = "0.1.0";
  manifest.recipe = {{"scheme", "W4A16"}};
  const auto committed = writer.Commit(std::move(manifest));
  ASSERT_TRUE(committed.ok()) << committed.status();
  EXPECT_THAT(*ListDirectory(out), ElementsAre("LICENSE", "README.md", "config.json", "model.safetensors", "pith.json", "tokenizer.json"));
  EXPECT_EQ(ReadTestFile(out + "/config.json"), "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": 1\n}\n");
  EXPECT_EQ(ReadTestFile(out + "/tokenizer.json"), "{ \"odd\":  1 }");
  EXPECT_EQ(ReadTestFile(out + "/README.md"), RenderModelCard(*committed, std::nullopt));
  EXPECT_EQ(committed->files.size(), 4u);
  uint64_t bytes = 0;
  for (const auto& [name, file] : committed->files) {
    EXPECT_EQ(file.sha256, *Sha256OfFile(JoinPath(out, name))) << name;
    EXPECT_EQ(file.size, *FileSize(JoinPath(out, name))) << name;
    bytes += file.size;
  }
  EXPECT_EQ(writer.bytes_written(), bytes);
  EXPECT_TRUE(VerifyManifest(out).ok()) << VerifyManifest(out);
  EXPECT_EQ((*ReadManifest(out))->recipe["scheme"], "W4A16");
  const auto file = SafetensorsFile::Open(out + "/model.safetensors");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->metadata().at("format"), "pt");
  EXPECT_EQ(file->Bytes(*file->Find("lm_head.weight"))[7], 14);
  EXPECT_THAT(*ListDirectory(scratch.path()), ElementsAre("LICENSE", "README.md", "out", "tokenizer.json"));
}

TEST(ArtifactWriter, ShardsInReadingOrder) {
  const ScratchDirectory scratch;
  const std::string out = scratch.File("out");
  const auto writer = ArtifactWriter::Create(out, {.max_shard_bytes = 17});
  ASSERT_TRUE(writer.ok());
  std::vector<TensorSpec> specs = Specs();
  specs.push_back({"model.layers.3.big.weight", DType::kU8, {40}});
  specs.push_back({"model.layers.3.empty.weight", DType::kU8, {0}});
  ASSERT_TRUE((*writer)->DeclareTensors(specs).ok());
  for (const TensorSpec& spec : specs) {
    ASSERT_TRUE((*writer)->WriteTensor(spec.name, Fill(static_cast<size_t>(spec.shape[0]), 1)).ok()) << spec.name;
  }
  const auto manifest = (*writer)->Commit({});
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  const Json index = *ParseJson(ReadTestFile(JoinPath(out, kSafetensorsIndexName)));
  EXPECT_EQ(index["metadata"]["total_size"], 72);
  EXPECT_EQ(index["weight_map"], *ParseJson(R"({"model.embed_tokens.weight": "model-00001-of-00003.safetensors",
    "model.layers.2.a.weight": "model-00001-of-00003.safetensors", "model.layers.3.big.weight": "model-00002-of-00003.safetensors",
    "model.layers.3.empty.weight": "model-00002-of-00003.safetensors", "model.layers.10.a.weight": "model-00003-of-00003.safetensors",
    "lm_head.weight": "model-00003-of-00003.safetensors"})"));
  const auto shards = SafetensorsShards::Open(out);
  ASSERT_TRUE(shards.ok()) << shards.status();
  EXPECT_EQ(shards->tensors().size(), 6u);
  EXPECT_TRUE(VerifyManifest(out).ok());
}

TEST(ArtifactWriter, MistakesOfTheCaller) {
  const ScratchDirectory scratch;
  const auto writer = ArtifactWriter::Create(scratch.File("out"));
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->DeclareTensors(Specs()).ok());
  EXPECT_EQ((*writer)->DeclareTensors({}).code(), absl::StatusCode::kInternal);
  EXPECT_EQ((*writer)->WriteTensor("absent", {}).code(), absl::StatusCode::kInternal);
  EXPECT_EQ((*writer)->WriteTensor("lm_head.weight", Fill(7, 0)).code(), absl::StatusCode::kInternal);
  for (const char* name : {"", ".", "..", "a/b", "pith.json", "README.md"})
    EXPECT_EQ((*writer)->AddFile(name, "").code(), absl::StatusCode::kInternal) << name;
  ASSERT_TRUE((*writer)->AddFile("a", "").ok());
  EXPECT_EQ((*writer)->AddFile("a", "").code(), absl::StatusCode::kInternal);
  const auto commit = (*writer)->Commit({});
  EXPECT_EQ(commit.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(commit.status().message(), HasSubstr("bytes written, found 0"));
  EXPECT_FALSE(FileExists(scratch.File("out")));
  const auto twice = ArtifactWriter::Create(scratch.File("twice"));
  EXPECT_EQ((*twice)->DeclareTensors({{"a", DType::kU8, {1}}, {"a", DType::kU8, {1}}}).code(), absl::StatusCode::kInternal);
}

TEST(ArtifactWriter, RefusesOutputsThatCannotBe) {
  const ScratchDirectory scratch;
  const auto code = [&](const std::string& path, const std::string& source = "") {
    return ToExitCode(ArtifactWriter::Create(path, {.source_path = source}).status());
  };
  EXPECT_EQ(code(""), kExitCannotCreate);
  EXPECT_EQ(code(scratch.File("no/such/parent")), kExitCannotCreate);
  std::filesystem::create_directory(scratch.File("full"));
  WriteTestFile(scratch.File("full/file"), "x");
  EXPECT_EQ(code(scratch.File("full")), kExitCannotCreate);       // exists
  EXPECT_EQ(code(scratch.File("full/file")), kExitCannotCreate);  // is a file
  std::filesystem::create_directory(scratch.File("source"));
  EXPECT_EQ(code(scratch.File("source"), scratch.File("source")), kExitCannotCreate);
  EXPECT_EQ(code(scratch.File("full/../source/"), scratch.File("source")), kExitCannotCreate);
  std::filesystem::create_directory_symlink(scratch.File("source"), scratch.File("link"));
  EXPECT_THAT(ArtifactWriter::Create(scratch.File("link"), {.source_path = scratch.File("source")}).status().message(),
              HasSubstr("expected an output apart from the input"));
  EXPECT_EQ(code(scratch.File("source"), scratch.File("full")), kExitDone);  // an empty directory may be filled
  EXPECT_THAT(*ListDirectory(scratch.File("full")), ElementsAre("file"));
}

TEST(ArtifactWriter, LeavesNothingBehindWithoutCommit) {
  const ScratchDirectory scratch;
  {
    const auto writer = ArtifactWriter::Create(scratch.File("out"));
    ASSERT_TRUE((*writer)->DeclareTensors(Specs()).ok());
    ASSERT_TRUE((*writer)->AddFile("config.json", "{}").ok());
  }
  EXPECT_THAT(*ListDirectory(scratch.path()), IsEmpty());
}

// A process killed at any point leaves no file under the final name.
TEST(ArtifactWriter, KilledBeforeCommitLeavesNoOutput) {
  for (int point = 0; point < 4; ++point) {
    const ScratchDirectory scratch;
    const pid_t child = fork();
    if (child == 0) {
      auto writer = ArtifactWriter::Create(scratch.File("out"));
      if (point > 0) (void)(*writer)->DeclareTensors(Specs());
      if (point > 1) (void)(*writer)->AddFile("config.json", "{}");
      if (point > 2) {
        for (const TensorSpec& spec : Specs()) (void)(*writer)->WriteTensor(spec.name, Fill(8, 1));
      }
      kill(getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_FALSE(FileExists(scratch.File("out"))) << point;
    // And the next run works in spite of what was left.
    const auto writer = ArtifactWriter::Create(scratch.File("out"));
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->AddFile("config.json", "{}").ok());
    EXPECT_TRUE((*writer)->Commit({}).ok());
    EXPECT_TRUE(FileExists(scratch.File("out/config.json")));
  }
}

// A file system of a few pages, mounted for the test (root only).
class FullDisk : public testing::Test {
 protected:
  void SetUp() override {
    if (mount("tmpfs", scratch_.path().c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "needs the right to mount a tmpfs";
    mounted_ = true;
  }
  void TearDown() override {
    if (mounted_) umount(scratch_.path().c_str());
  }
  ScratchDirectory scratch_;
  bool mounted_ = false;
};

TEST_F(FullDisk, SpaceIsAskedForUpFront) {
  const auto writer = ArtifactWriter::Create(scratch_.File("out"));
  ASSERT_TRUE(writer.ok()) << writer.status();
  const absl::Status status = (*writer)->DeclareTensors(Specs());
  EXPECT_EQ(ToExitCode(status), kExitIo);
  EXPECT_THAT(status.message(), HasSubstr("bytes of free disk space, found "));
}

TEST_F(FullDisk, RunningOutOfSpaceIsAnIoError) {
  {
    const auto writer = ArtifactWriter::Create(scratch_.File("out"));
    ASSERT_TRUE(writer.ok());
    const absl::Status status = (*writer)->AddFile("big", std::string(200'000, 'x'));
    EXPECT_EQ(ToExitCode(status), kExitIo);
    EXPECT_THAT(status.message(), HasSubstr("No space left on device"));
  }
  auto tensors = SafetensorsWriter::Create(scratch_.File("m.safetensors"), {{"a", DType::kU8, {200'000}}}, {});
  ASSERT_TRUE(tensors.ok());
  const absl::Status status = tensors->Write("a", Fill(200'000, 1));
  EXPECT_EQ(ToExitCode(status), kExitIo);
  EXPECT_THAT(status.message(), HasSubstr("No space left on device"));
  EXPECT_FALSE(FileExists(scratch_.File("out")));
}

TEST(ArtifactWriter, ReadOnlyParent) {
  constexpr uid_t kNobody = 65534;
  const ScratchDirectory scratch;
  std::filesystem::permissions(scratch.path(), std::filesystem::perms(0755));
  std::filesystem::create_directory(scratch.File("locked"));
  std::filesystem::permissions(scratch.File("locked"), std::filesystem::perms(0555));
  const bool root = geteuid() == 0;  // root may write everywhere, so it becomes someone else for a moment
  if (root) {
    ASSERT_EQ(seteuid(kNobody), 0);
  }
  const auto writer = ArtifactWriter::Create(scratch.File("locked/out"));
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_EQ(ToExitCode(writer.status()), kExitCannotCreate);
  EXPECT_THAT(writer.status().message(), HasSubstr("locked/out"));
}

}  // namespace
}  // namespace pith
