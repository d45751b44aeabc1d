#include "model/prepack_cache.h"

#include <unistd.h>

#include <fstream>
#include <numeric>

#include "base/interrupt.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::HasSubstr;

constexpr size_t kLarge = (size_t{4} << 20) + 5;  // a piece and the start of another

class PrepackCacheTest : public testing::Test {
 protected:
  PrepackCacheTest() : large_(kLarge), small_(100) {
    for (size_t i = 0; i < large_.size(); ++i) large_[i] = static_cast<uint8_t>(i * 13 + (i >> 11));
    std::iota(small_.begin(), small_.end(), uint8_t{1});
    description_["a"].parts = {{.name = "a"}};
    description_["a"].matrices = {{{.n = 16, .k = 2}, "kernel"}, {{.n = 16, .k = 4}, "kernel"}};
    description_["t"].parts = {{.name = "t"}};
  }
  absl::StatusOr<uint64_t> Write(const std::string& path, const std::string& key = "key") {
    std::map<std::string, PrepackedBytes> bytes;
    bytes["a"].matrices = {large_, small_};
    bytes["t"].table = small_;
    return WritePrepackCache(path, key, description_, bytes, pool_);
  }
  // Reads all of it and compares.
  absl::Status ReadAll(const std::string& path, const std::string& key = "key") {
    ASSIGN_OR_RETURN(PrepackCache cache, PrepackCache::Open(path, key));
    std::vector<uint8_t> large(large_.size()), small(small_.size()), table(small_.size());
    RETURN_IF_ERROR(cache.RequestMatrix("a", 0, absl::MakeSpan(large)));
    RETURN_IF_ERROR(cache.RequestMatrix("a", 1, absl::MakeSpan(small)));
    RETURN_IF_ERROR(cache.RequestTable("t", absl::MakeSpan(table)));
    int64_t last = 0;
    RETURN_IF_ERROR(cache.Read(pool_, [&](int64_t done, int64_t total) {
      EXPECT_GT(done, last);
      EXPECT_EQ(total, static_cast<int64_t>(large_.size() + 2 * small_.size()));
      last = done;
    }));
    EXPECT_TRUE(large == large_ && small == small_ && table == small_);
    return absl::OkStatus();
  }
  std::string File() const { return scratch_.File("cache.safetensors"); }

  const ScratchDirectory scratch_;
  ThreadPool pool_{2};
  std::vector<uint8_t> large_, small_;
  PrepackDescription description_;
};

TEST_F(PrepackCacheTest, WhatIsWrittenIsRead) {
  const auto written = Write(File());
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(*written, *FileSize(File()));
  EXPECT_TRUE(ReadAll(File()).ok());
  const auto cache = PrepackCache::Open(File(), "key");
  ASSERT_TRUE(cache.ok());
  EXPECT_EQ((*cache->Find("a"))->matrices.size(), 2u);
  EXPECT_EQ(cache->Find("b").status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(PrepackCacheTest, AnotherKeyAndForeignFilesAreRefused) {
  EXPECT_EQ(ReadAll(File()).code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(Write(File()).ok());
  EXPECT_THAT(std::string(ReadAll(File(), "other").message()), HasSubstr("expected weights prepacked from this model by this build"));
  for (const std::string& foreign : {std::string(), std::string("short"), std::string(1000, 'x'), std::string(8, '\0')}) {
    ASSERT_TRUE(WriteFileAtomically(File(), foreign).ok());
    EXPECT_EQ(ReadAll(File()).code(), absl::StatusCode::kDataLoss) << foreign.size();
  }
  const std::string header = R"({"__metadata__":{"format":"pt"}})";
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  ASSERT_TRUE(WriteFileAtomically(File(), length + header).ok());
  EXPECT_THAT(std::string(ReadAll(File()).message()), HasSubstr("metadata: expected format \"pith-prepack\" and a key, found format \""));
}

// Wherever it is: in the header, the description, the checksums, the bytes themselves.
TEST_F(PrepackCacheTest, AFlippedByteIsFound) {
  ASSERT_TRUE(Write(File()).ok());
  const size_t size = *FileSize(File());
  std::vector<size_t> places;
  for (size_t i = 0; i < 1600; i += 5) places.push_back(i);
  for (size_t i = 1600; i < size; i += 1'000'003) places.push_back(i);
  for (size_t i = size - 3; i < size; ++i) places.push_back(i);
  std::fstream file(File(), std::ios::in | std::ios::out | std::ios::binary);
  const auto flip = [&](size_t place) {
    file.seekg(static_cast<std::streamoff>(place));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(place));
    file.put(static_cast<char>(byte ^ 1));
    file.flush();
  };
  for (const size_t place : places) {
    flip(place);
    EXPECT_EQ(ReadAll(File()).code(), absl::StatusCode::kDataLoss) << "byte " << place;
    flip(place);
  }
  EXPECT_TRUE(ReadAll(File()).ok());
}

TEST_F(PrepackCacheTest, ATruncatedFileIsFound) {
  ASSERT_TRUE(Write(File()).ok());
  const uint64_t size = *FileSize(File());
  for (const uint64_t kept : {size - 1, size / 2, uint64_t{100}, uint64_t{8}, uint64_t{7}, uint64_t{0}}) {
    ASSERT_TRUE(Write(File()).ok());
    ASSERT_EQ(truncate(File().c_str(), static_cast<off_t>(kept)), 0);
    EXPECT_EQ(ReadAll(File()).code(), absl::StatusCode::kDataLoss) << kept;
  }
  // While it is open.
  ASSERT_TRUE(Write(File()).ok());
  auto cache = PrepackCache::Open(File(), "key");
  ASSERT_TRUE(cache.ok());
  ASSERT_EQ(truncate(File().c_str(), static_cast<off_t>(size / 2)), 0);
  std::vector<uint8_t> out(small_.size());
  ASSERT_TRUE(cache->RequestTable("t", absl::MakeSpan(out)).ok());
  EXPECT_EQ(cache->Read(pool_, nullptr).code(), absl::StatusCode::kDataLoss);
}

TEST_F(PrepackCacheTest, OnlyWhatIsThereInItsSizeCanBeRequested) {
  ASSERT_TRUE(Write(File()).ok());
  auto cache = PrepackCache::Open(File(), "key");
  ASSERT_TRUE(cache.ok());
  std::vector<uint8_t> out(99);
  EXPECT_THAT(std::string(cache->RequestMatrix("a", 1, absl::MakeSpan(out)).message()), HasSubstr("a.1: expected 99 bytes, found 100"));
  EXPECT_THAT(std::string(cache->RequestMatrix("a", 2, absl::MakeSpan(out)).message()), HasSubstr("found no such tensor"));
}

TEST_F(PrepackCacheTest, AnInterruptStops) {
  ASSERT_TRUE(Write(File()).ok());
  auto cache = PrepackCache::Open(File(), "key");
  ASSERT_TRUE(cache.ok());
  std::vector<uint8_t> out(small_.size());
  ASSERT_TRUE(cache->RequestTable("t", absl::MakeSpan(out)).ok());
  SetInterruptSignal(2);
  EXPECT_EQ(cache->Read(pool_, nullptr).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(Write(scratch_.File("new")).status().code(), absl::StatusCode::kCancelled);
  SetInterruptSignal(0);
  EXPECT_FALSE(FileExists(scratch_.File("new")));
}

TEST_F(PrepackCacheTest, WhatCannotBeWrittenIsAnError) {
  for (const std::string& path : {scratch_.File("no/such/directory"), scratch_.path()}) {
    EXPECT_EQ(Write(path).status().code(), absl::StatusCode::kPermissionDenied) << path;
  }
}

}  // namespace
}  // namespace pith
