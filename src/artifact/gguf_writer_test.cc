#include "artifact/gguf_writer.h"

#include "artifact/gguf.h"
#include "artifact/test_files.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::ElementsAre;

const GgufType* TypeOf(uint32_t id) { return *FindGgufType(id); }

GgufMetadataWriter Metadata() {
  GgufMetadataWriter metadata;
  metadata.AddString("general.architecture", "llama");
  metadata.AddU32("llama.block_count", 2);
  metadata.AddF32("llama.rope.freq_base", 10000.0f);
  metadata.AddBool("tokenizer.ggml.add_bos_token", true);
  metadata.AddStrings("tokenizer.ggml.tokens", {"a", "", "c d"});
  metadata.AddInts("tokenizer.ggml.token_type", {1, -2, 3});
  metadata.AddFloats("tokenizer.ggml.scores", {0.5f, -1.0f});
  return metadata;
}

// What is written is what our strict reader gives, tensors written in another order than declared included.
TEST(GgufWriter, RoundTrips) {
  const ScratchDirectory scratch;
  const std::string path = scratch.File("m.gguf");
  auto writer = GgufWriter::Create(path, Metadata(), {{"a", TypeOf(0), {3}}, {"b", TypeOf(2), {2, 64}}, {"c", TypeOf(1), {5}}});
  ASSERT_TRUE(writer.ok()) << writer.status();
  const std::vector<uint8_t> a(12, 1), b(2 * 2 * 18, 2), c(10, 3);
  EXPECT_FALSE(FileExists(path));
  ASSERT_TRUE(writer->Write("c", c).ok());
  ASSERT_TRUE(writer->Write("a", a).ok());
  EXPECT_EQ(writer->Write("a", a).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(writer->Write("b", a).code(), absl::StatusCode::kInternal);
  ASSERT_TRUE(writer->Write("b", b).ok());
  ASSERT_TRUE(writer->Commit().ok());
  EXPECT_EQ(*FileSize(path), writer->file_size());
  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->version(), 3u);
  EXPECT_EQ(*file->metadata().GetString("general.architecture"), "llama");
  EXPECT_EQ(*file->metadata().GetInt("llama.block_count", 0, 9), 2);
  EXPECT_EQ(*file->metadata().GetDouble("llama.rope.freq_base", 0, 1e9), 10000.0);
  EXPECT_EQ(*file->metadata().GetBool("tokenizer.ggml.add_bos_token"), true);
  EXPECT_THAT(*file->metadata().GetStrings("tokenizer.ggml.tokens"), ElementsAre("a", "", "c d"));
  EXPECT_THAT(*file->metadata().GetInts("tokenizer.ggml.token_type", -9, 9), ElementsAre(1, -2, 3));
  EXPECT_THAT(*file->metadata().GetFloats("tokenizer.ggml.scores"), ElementsAre(0.5f, -1.0f));
  ASSERT_EQ(file->tensors().size(), 3u);
  EXPECT_EQ(file->tensors()[1].shape, Shape({2, 64}));
  EXPECT_EQ(file->tensors()[1].type->name, "Q4_0");
  EXPECT_EQ(file->Bytes(file->tensors()[0]), absl::MakeConstSpan(a));
  EXPECT_EQ(file->Bytes(file->tensors()[1]), absl::MakeConstSpan(b));
  EXPECT_EQ(file->Bytes(file->tensors()[2]), absl::MakeConstSpan(c));
}

TEST(GgufWriter, LeavesNothingUnlessCommitted) {
  const ScratchDirectory scratch;
  {
    auto writer = GgufWriter::Create(scratch.File("m.gguf"), Metadata(), {{"a", TypeOf(0), {3}}});
    ASSERT_TRUE(writer.ok()) << writer.status();
    EXPECT_EQ(writer->Commit().code(), absl::StatusCode::kInternal);
  }
  EXPECT_THAT(*ListDirectory(scratch.path()), ElementsAre());
  WriteTestFile(scratch.File("there"), "x");
  EXPECT_EQ(GgufWriter::Create(scratch.File("there"), Metadata(), {}).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(GgufWriter::Create(scratch.File("twice"), Metadata(), {{"a", TypeOf(0), {3}}, {"a", TypeOf(0), {3}}}).status().code(),
            absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace pith
