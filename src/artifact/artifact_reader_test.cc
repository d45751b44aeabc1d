#include "artifact/artifact_reader.h"

#include "artifact/tiny_models.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::Status Refusal(const std::string& path) { return ArtifactReader::Open(path).status(); }

TEST(ArtifactReader, OpensBothContainers) {
  const ScratchDirectory scratch;
  TinyDirectory().Write(scratch.path());
  WriteTestFile(scratch.File("tiny.gguf"), TinyGguf().Build());
  const auto directory = ArtifactReader::Open(scratch.path());
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ((*directory)->format(), "huggingface");
  const auto gguf = ArtifactReader::Open(scratch.File("tiny.gguf"));
  ASSERT_TRUE(gguf.ok()) << gguf.status();
  EXPECT_EQ((*gguf)->format(), "gguf");
  EXPECT_EQ((*gguf)->path(), scratch.File("tiny.gguf"));
  EXPECT_EQ((*gguf)->Tensors()[0].file, "tiny.gguf");
  // The name does not decide: the content does.
  WriteTestFile(scratch.File("blob"), TinyGguf().Build());
  EXPECT_TRUE(ArtifactReader::Open(scratch.File("blob")).ok());
}

TEST(ArtifactReader, NamesTheFilesOfItsWeightsAsTheyWereOpened) {
  const ScratchDirectory scratch;
  TinyDirectory().Write(scratch.path());
  WriteTestFile(scratch.File("tiny.gguf"), TinyGguf().Build());
  for (const auto& [path, file] : {std::pair(scratch.path(), "model.safetensors"), std::pair(scratch.File("tiny.gguf"), "tiny.gguf")}) {
    const auto reader = ArtifactReader::Open(path);
    ASSERT_TRUE(reader.ok()) << reader.status();
    const std::vector<WeightFile> files = (*reader)->WeightFiles();
    ASSERT_EQ(files.size(), 1u);
    EXPECT_EQ(files[0].name, file);
    EXPECT_EQ(files[0].identity.size, *FileSize(scratch.File(file)));
    EXPECT_EQ(files[0].identity, MappedFile::Open(scratch.File(file))->identity());
    ASSERT_TRUE(WriteFileAtomically(scratch.File(file), *ReadFile(scratch.File(file))).ok());  // an equal file is another one
    EXPECT_EQ((*reader)->WeightFiles()[0].identity, files[0].identity);
    EXPECT_NE((*ArtifactReader::Open(path))->WeightFiles()[0].identity, files[0].identity);
  }
}

TEST(ArtifactReader, RefusesEverythingElse) {
  const ScratchDirectory scratch;
  EXPECT_EQ(Refusal(scratch.File("absent")).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ToExitCode(Refusal(scratch.File("absent"))), kExitMissingInput);
  EXPECT_EQ(Refusal(scratch.path()).code(), absl::StatusCode::kNotFound);  // an empty directory
  for (const char* name : {"model.bin", "model.pt", "model.pth", "model.ckpt"}) {
    WriteTestFile(scratch.File(name), "x");
    EXPECT_EQ(ToExitCode(Refusal(scratch.File(name))), kExitBadFile);
    EXPECT_THAT(Refusal(scratch.File(name)).message(), HasSubstr("use the safetensors files of the model"));
  }
  WriteTestFile(scratch.File("model.safetensors"), SafetensorsBytes("{}", ""));
  EXPECT_THAT(Refusal(scratch.File("model.safetensors")).message(), HasSubstr("give the directory that holds it and its config.json"));
  WriteTestFile(scratch.File("lfs.gguf"), "version https://git-lfs.github.com/spec/v1\noid sha256:0\n");
  EXPECT_THAT(Refusal(scratch.File("lfs.gguf")).message(), HasSubstr("lfs.gguf: magic: expected \"GGUF\", found a Git LFS pointer"));
  WriteTestFile(scratch.File("page.gguf"), "<!doctype html>");
  EXPECT_THAT(Refusal(scratch.File("page.gguf")).message(), HasSubstr("HTML page"));
  WriteTestFile(scratch.File("empty.gguf"), "");
  EXPECT_THAT(Refusal(scratch.File("empty.gguf")).message(), HasSubstr("empty file"));
  EXPECT_EQ(Refusal("/dev/zero").code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Refusal("").code(), absl::StatusCode::kNotFound);
}

// A reader with one quantized and one dense module and a bias, relying on the default implementations.
class DefaultsReader : public ArtifactReader {
 public:
  std::vector<TensorInfo> Tensors() const override { return {}; }
  std::vector<std::string> WeightNames() const override { return {"q", "d"}; }
  bool HasWeight(absl::string_view name) const override { return name == "q" || name == "d"; }
  absl::StatusOr<Weight> ReadWeight(absl::string_view name) const override {
    if (!HasWeight(name)) return BadFileError("none");
    Weight weight;
    weight.stored_bytes = 5;
    if (name == "d") {
      weight.dense = TensorView{DType::kF16, {4}, nullptr};
    } else {
      weight.quantized.emplace();
      weight.quantized->out = 2;
      weight.quantized->in = 3;
      weight.quantized->format = "Q4_K";
    }
    return weight;
  }
  absl::StatusOr<std::optional<Weight>> ReadTensor(absl::string_view name) const override {
    return name == "d.bias" ? std::optional<Weight>(Weight{}) : std::nullopt;
  }
  absl::StatusOr<std::string> Fingerprint() const override { return ""; }
};

TEST(ArtifactReader, DefaultImplementations) {
  const DefaultsReader reader;
  EXPECT_THAT(reader.PlainTensorNames(), ElementsAre("d.bias"));
  EXPECT_EQ(reader.DescribeWeight("q")->type, "Q4_K");
  EXPECT_EQ(reader.DescribeWeight("q")->shape, Shape({2, 3}));
  EXPECT_EQ(reader.DescribeWeight("q")->quantized->bits, 8);
  EXPECT_FALSE(reader.DescribeWeight("d")->quantized.has_value());
  EXPECT_EQ(reader.DescribeWeight("d")->type, "F16");
  EXPECT_EQ(reader.DescribeWeight("d")->stored_bytes, 5);
  EXPECT_FALSE(reader.DescribeWeight("x").ok());
}

}  // namespace
}  // namespace pith
