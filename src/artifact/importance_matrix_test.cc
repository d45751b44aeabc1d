#include "artifact/importance_matrix.h"

#include "artifact/test_files.h"
#include "base/file.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string LegacyEntry(const std::string& name, int32_t calls, const std::vector<float>& values) {
  return absl::StrCat(RawBytes(static_cast<int32_t>(name.size())), name, RawBytes(calls), RawBytes(static_cast<int32_t>(values.size())),
                      RawBytes(values));
}

std::string Legacy(const std::string& tail = "") {
  return absl::StrCat(RawBytes<int32_t>(2), LegacyEntry("blk.0.attn_q.weight", 4, {2, 4, 0}), LegacyEntry("output.weight", 0, {0, 0}),
                      tail);
}

TEST(ImportanceMatrix, ReadsLegacyFiles) {
  const auto matrix = ParseImportanceMatrix(Legacy(RawBytes<int32_t>(7) + RawBytes<int32_t>(5) + "a.txt"));
  ASSERT_TRUE(matrix.ok()) << matrix.status();
  EXPECT_THAT(*matrix->Importance("blk.0.attn_q.weight", 3), ElementsAre(0.5f, 1.0f, 0.0f));
  EXPECT_THAT(*matrix->Importance("output.weight", 2), ElementsAre(1.0f, 1.0f));  // met nothing
  EXPECT_TRUE(matrix->Importance("blk.9.attn_q.weight", 3)->empty());
  EXPECT_EQ(matrix->chunk_count, 7);
  EXPECT_THAT(matrix->datasets, ElementsAre("a.txt"));
  EXPECT_THAT(matrix->Importance("output.weight", 3).status().message(), HasSubstr("output.weight: expected 3 columns, found 2"));
  EXPECT_TRUE(ParseImportanceMatrix(Legacy()).ok());
}

TEST(ImportanceMatrix, WritesGgufAndReadsItBack) {
  const ScratchDirectory scratch;
  ImportanceMatrix matrix = *ParseImportanceMatrix(Legacy(RawBytes<int32_t>(7)));
  matrix.chunk_size = 512;
  matrix.datasets = {"x", "y"};
  const std::string path = scratch.File("i.gguf");
  ASSERT_TRUE(WriteImportanceMatrix(matrix, path).ok());
  const auto read = ReadImportanceMatrix(path);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->entries.size(), 2u);
  for (const auto& [name, entry] : matrix.entries) {
    EXPECT_EQ(read->entries.at(name).sum_squares, entry.sum_squares);
    EXPECT_EQ(read->entries.at(name).count, entry.count);
  }
  EXPECT_EQ(read->datasets, matrix.datasets);
  EXPECT_EQ(read->chunk_count, 7);
  EXPECT_EQ(read->chunk_size, 512);
}

TEST(ImportanceMatrix, WritesTheOldFormAndReadsItBack) {
  const ScratchDirectory scratch;
  ImportanceMatrix matrix;
  matrix.entries["blk.0.attn_q.weight"] = {{6, 12, 0}, 12};
  matrix.entries["blk.0.attn_k.weight"] = {{0, 0}, 0};  // has no place there
  matrix.datasets = {"a.txt", "b"};
  matrix.chunk_count = 3;
  const std::string path = scratch.File("i.dat");
  ASSERT_TRUE(WriteLegacyImportanceMatrix(matrix, path).ok());
  EXPECT_EQ(*ReadFile(path), absl::StrCat(RawBytes<int32_t>(1), LegacyEntry("blk.0.attn_q.weight", 3, {1.5, 3, 0}), RawBytes<int32_t>(3),
                                          RawBytes<int32_t>(8), "a.txt, b"));
  const auto read = ReadImportanceMatrix(path);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(*read->Importance("blk.0.attn_q.weight", 3), ElementsAre(0.5f, 1.0f, 0.0f));
  EXPECT_EQ(read->chunk_count, 3);
  EXPECT_EQ(WriteLegacyImportanceMatrix(matrix, path).code(), absl::StatusCode::kPermissionDenied);  // exists
  matrix.entries.erase("blk.0.attn_q.weight");
  EXPECT_EQ(WriteLegacyImportanceMatrix(matrix, scratch.File("none.dat")).code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(FileExists(scratch.File("none.dat")));
}

TEST(ImportanceMatrix, IsToldFromAModel) {
  const ScratchDirectory scratch;
  const auto is_matrix = [&](absl::string_view bytes) {
    EXPECT_TRUE(WriteFileAtomically(scratch.File("f"), bytes).ok());
    return IsImportanceMatrix(scratch.File("f"));
  };
  EXPECT_EQ(*is_matrix(Legacy()), true);
  EXPECT_EQ(*is_matrix(GgufBuilder().Str("general.type", "imatrix").Build()), true);
  EXPECT_EQ(*is_matrix(GgufBuilder().Str("general.type", "model").Build()), false);
  EXPECT_EQ(*is_matrix(GgufBuilder().Build()), false);
  EXPECT_EQ(is_matrix("GGUF and nothing more").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(*IsImportanceMatrix(scratch.File("absent")), false);
  EXPECT_EQ(*IsImportanceMatrix(scratch.path()), false);
}

TEST(ImportanceMatrix, RefusesBadFiles) {
  const auto error = [](absl::string_view bytes) {
    const absl::Status status = ParseImportanceMatrix(bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(error(""), HasSubstr("number of entries"));
  EXPECT_THAT(error(RawBytes<int32_t>(-1) + std::string(40, ' ')), HasSubstr("number of entries: expected 1 to"));
  EXPECT_THAT(error(RawBytes<int32_t>(1) + LegacyEntry("a\n", 1, {1})), HasSubstr("expected a name of 1 to 255"));
  EXPECT_THAT(error(RawBytes<int32_t>(1) + LegacyEntry("a", -1, {1, 1})), HasSubstr("calls: expected at least 0, found -1"));
  EXPECT_THAT(error(RawBytes<int32_t>(1) + LegacyEntry("a", 1, {1, -1})),
              HasSubstr("a: expected finite sums of squares, found -1 in column 1"));
  EXPECT_THAT(error(RawBytes<int32_t>(2) + LegacyEntry("a", 1, {1, 1}) + LegacyEntry("a", 1, {1, 1})), HasSubstr("expected one entry"));
  const std::string whole = Legacy(RawBytes<int32_t>(7) + RawBytes<int32_t>(5) + "a.txt");
  EXPECT_THAT(error(whole + "x"), HasSubstr("expected the end of the file"));
  for (size_t size = 0; size < whole.size(); ++size) {
    const bool oldest = size == Legacy().size() || size == Legacy().size() + 4;
    EXPECT_EQ(ParseImportanceMatrix(whole.substr(0, size)).ok(), oldest) << size;
  }
  EXPECT_THAT(error(GgufBuilder().Str("general.type", "model").Build()), HasSubstr("general.type: expected \"imatrix\", found \"model\""));
  GgufBuilder alone;
  alone.Str("general.type", "imatrix").Tensor("a.in_sum2", {2, 1}, 0, RawBytes(std::vector<float>{1, 2}));
  EXPECT_THAT(error(alone.Build()), HasSubstr("a.counts: expected a tensor beside the sums"));
  alone.Tensor("b", {1}, 0, RawBytes(1.0f));
  EXPECT_THAT(error(alone.Tensor("a.counts", {1, 1}, 0, RawBytes(1.0f)).Build()), HasSubstr("b: expected only sums and counts"));
  GgufBuilder experts;
  experts.Str("general.type", "imatrix").Tensor("a.in_sum2", {2, 2}, 0, RawBytes(std::vector<float>{1, 2, 3, 4}));
  experts.Tensor("a.counts", {1, 2}, 0, RawBytes(std::vector<float>{1, 2}));
  EXPECT_EQ(ParseImportanceMatrix(experts.Build()).status().code(), absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace pith
