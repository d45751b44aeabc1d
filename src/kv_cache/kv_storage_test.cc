#include "kv_cache/kv_storage.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kv_cache/block_pool.h"

namespace pith {
namespace {

TEST(KvStorage, SizesAndStrides) {
  const KvCacheSpec spec{.num_layers = 3, .num_kv_heads = 2, .head_dim = 16, .num_blocks = 5};
  EXPECT_EQ(spec.head_stride(), 32 * 16 * 2);
  EXPECT_EQ(spec.block_stride(), 2 * 32 * 16 * 2);
  EXPECT_EQ(spec.bytes_per_token(), 2 * 3 * 2 * 16 * 2);
  auto storage = KvStorage::Create(spec);
  ASSERT_TRUE(storage.ok()) << storage.status();
  EXPECT_EQ(storage->bytes(), 5 * kBlockSizeTokens * spec.bytes_per_token());
  EXPECT_EQ(storage->spec().num_blocks, 5);
}

TEST(KvStorage, FormatsOfOneByteHaveAScalePerTokenAndHead) {
  for (const KvDtype dtype : {KvDtype::kInt8, KvDtype::kFp8}) {
    const KvCacheSpec spec{.num_layers = 3, .num_kv_heads = 2, .head_dim = 16, .num_blocks = 5, .dtype = dtype};
    EXPECT_EQ(spec.head_stride(), 32 * 16 + 32 * 4);
    EXPECT_EQ(spec.block_stride(), 2 * (32 * 16 + 32 * 4));
    EXPECT_EQ(spec.bytes_per_token(), 2 * 3 * 2 * (16 + 4));
    auto storage = KvStorage::Create(spec);
    ASSERT_TRUE(storage.ok()) << storage.status();
    EXPECT_EQ(storage->bytes(), 5 * kBlockSizeTokens * spec.bytes_per_token());
  }
}

TEST(KvDtype, NamesAreTheirOwnInverse) {
  for (const char* name : {"bf16", "int8", "fp8"}) EXPECT_EQ(KvDtypeName(ParseKvDtype(name).value()), name);
  EXPECT_EQ(ParseKvDtype("auto"), std::nullopt);
  EXPECT_EQ(ParseKvDtype("fp16"), std::nullopt);
}

TEST(KvStorage, LayersAreDisjointAndZeroed) {
  const KvCacheSpec spec{.num_layers = 2, .num_kv_heads = 1, .head_dim = 8, .num_blocks = 3};
  auto storage = KvStorage::Create(spec);
  ASSERT_TRUE(storage.ok());
  const int64_t count = spec.num_blocks * spec.block_stride();
  uint8_t* const arrays[] = {storage->key(0), storage->value(0), storage->key(1), storage->value(1)};
  for (uint8_t marker = 1; marker <= 4; ++marker) {
    for (int64_t i = 0; i < count; ++i) EXPECT_EQ(arrays[marker - 1][i], 0);
    std::fill_n(arrays[marker - 1], count, marker);
  }
  KvStorage moved = *std::move(storage);
  EXPECT_EQ(moved.key(1), arrays[2]);
  for (uint8_t marker = 1; marker <= 4; ++marker) {
    EXPECT_EQ(arrays[marker - 1][0], marker);
    EXPECT_EQ(arrays[marker - 1][count - 1], marker);
  }
}

TEST(KvStorage, RefusesWhatCannotBeHad) {
  const KvCacheSpec huge{.num_layers = 32, .num_kv_heads = 8, .head_dim = 128, .num_blocks = int64_t{1} << 28};
  const absl::Status too_big = KvStorage::Create(huge).status();
  EXPECT_EQ(too_big.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(too_big.message()), testing::HasSubstr("bytes of memory"));
  const KvCacheSpec wraps{.num_layers = 512, .num_kv_heads = 1024, .head_dim = 1024, .num_blocks = int64_t{1} << 40};
  EXPECT_EQ(KvStorage::Create(wraps).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(KvStorage::Create({.num_layers = 1, .num_kv_heads = 1, .head_dim = 8, .num_blocks = 0}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pith
