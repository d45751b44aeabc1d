#include "artifact/gguf_architecture.h"

#include "artifact/tiny_models.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::HasSubstr;

// Sizes of a file's metadata, or the error.
absl::StatusOr<GgufSizes> Sizes(const TinyGguf& tiny) {
  const std::string bytes = tiny.Build();
  const auto file = GgufFile::Parse(bytes);
  if (!file.ok()) return file.status();
  return ReadGgufSizes(*file, **FindGgufArchitecture(tiny.architecture));
}

std::string Error(const TinyGguf& tiny, absl::StatusCode code = absl::StatusCode::kDataLoss) {
  const auto sizes = Sizes(tiny);
  if (sizes.ok()) return "accepted";
  EXPECT_EQ(sizes.status().code(), code) << sizes.status();
  return std::string(sizes.status().message());
}

// A tiny llama whose metadata value `key` is replaced by `raw` of a type.
TinyGguf With(const std::string& key, uint32_t type, const std::string& raw) {
  TinyGguf tiny;
  tiny.omit_keys = {key};
  tiny.more = [=](GgufBuilder& b) { b.Raw(key, type, raw); };
  return tiny;
}
TinyGguf WithU32(const std::string& key, uint32_t value) { return With(key, 4, RawBytes(value)); }

TEST(GgufArchitecture, Table) {
  for (const char* name : {"llama", "qwen2", "qwen3", "gemma3"}) EXPECT_EQ((*FindGgufArchitecture(name))->name, name);
  const auto unknown = FindGgufArchitecture("rwkv\n");
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(unknown.status().message(), HasSubstr("llama, qwen2, qwen3, gemma3; found \"rwkv\\x0A\""));
}

TEST(GgufArchitecture, ReadsSizes) {
  TinyGguf tiny;
  const auto sizes = Sizes(tiny);
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  EXPECT_EQ(sizes->num_layers, 2);
  EXPECT_EQ(sizes->hidden_size, 8);
  EXPECT_EQ(sizes->intermediate_size, 12);
  EXPECT_EQ(sizes->num_heads, 4);
  EXPECT_EQ(sizes->num_kv_heads, 2);
  EXPECT_EQ(sizes->head_dim, 2);
  EXPECT_EQ(sizes->vocab_size, 7);
  EXPECT_EQ(SideLength(GgufSide::kQueries, *sizes), 8);
  EXPECT_EQ(SideLength(GgufSide::kKeys, *sizes), 4);
  EXPECT_EQ(SideLength(GgufSide::kHeadDim, *sizes), 2);
  EXPECT_EQ(SideLength(GgufSide::kIntermediate, *sizes), 12);
  tiny.head_dim = 10;  // key_length is its own number
  EXPECT_EQ(Sizes(tiny)->head_dim, 10);
  tiny = TinyGguf();
  tiny.omit_keys = {"llama.attention.head_count_kv"};
  EXPECT_EQ(Sizes(tiny)->num_kv_heads, 4);
}

TEST(GgufArchitecture, EverySizeHasARange) {
  for (const char* key : {"block_count", "embedding_length", "feed_forward_length", "attention.head_count"}) {
    const std::string full = absl::StrCat("llama.", key);
    EXPECT_THAT(Error(WithU32(full, 0)), HasSubstr(full + ": expected an integer in [1, ")) << key;
    EXPECT_THAT(Error(WithU32(full, 0xFFFFFFFF)), HasSubstr(full + ": expected an integer")) << key;
    EXPECT_THAT(Error(With(full, 8, GgufBuilder::String("x"))), HasSubstr(full + ": expected an integer")) << key;
    TinyGguf missing;
    missing.omit_keys = {full};
    EXPECT_THAT(Error(missing), HasSubstr(full + ": expected an integer")) << key;
  }
  EXPECT_THAT(Error(WithU32("llama.block_count", 513)), HasSubstr("llama.block_count: expected an integer in [1, 512], found u32 513"));
  EXPECT_THAT(Error(WithU32("llama.attention.head_count_kv", 0)), HasSubstr("head_count_kv"));
  EXPECT_THAT(Error(WithU32("llama.attention.head_count_kv", 8)), HasSubstr("head_count_kv"));
  EXPECT_THAT(Error(WithU32("llama.attention.head_count_kv", 3)), HasSubstr("expected a divisor of 4"));
  TinyGguf three_heads;
  three_heads.heads = 3;
  three_heads.kv_heads = 1;
  EXPECT_THAT(Error(three_heads), HasSubstr("3 heads do not divide embedding_length 8"));
  EXPECT_THAT(Error(WithU32("llama.attention.head_count", 8)), HasSubstr("expected an even number in [2, 1024], found 1"));
  TinyGguf odd;
  odd.head_dim = 3;
  EXPECT_THAT(Error(odd), HasSubstr("llama.attention.key_length: expected an even number in [2, 1024], found 3"));
}

TEST(GgufArchitecture, SizesPerLayerMustAgree) {
  const auto heads = [](const std::vector<uint32_t>& values) {
    return With("llama.attention.head_count_kv", 9,
                absl::StrCat(RawBytes<uint32_t>(4), RawBytes<uint64_t>(values.size()), RawBytes(values)));
  };
  EXPECT_EQ(Sizes(heads({2, 2}))->num_kv_heads, 2);
  EXPECT_THAT(Error(heads({2, 4}), absl::StatusCode::kUnimplemented), HasSubstr("expected the same value for all layers, found 2 and 4"));
  EXPECT_THAT(Error(heads({2})), HasSubstr("expected one value per layer (2), found 1"));
  EXPECT_THAT(Error(heads({0, 0})), HasSubstr("expected at least 1, found 0"));
}

TEST(GgufArchitecture, Unsupported) {
  EXPECT_THAT(Error(WithU32("llama.expert_count", 8), absl::StatusCode::kUnimplemented), HasSubstr("mixtures of experts"));
  EXPECT_EQ(Error(WithU32("llama.expert_count", 0)), "accepted");
  EXPECT_THAT(Error(WithU32("llama.attention.value_length", 4), absl::StatusCode::kUnimplemented), HasSubstr("value_length: expected 2"));
  EXPECT_THAT(Error(WithU32("llama.rope.dimension_count", 1), absl::StatusCode::kUnimplemented), HasSubstr("dimension_count: expected 2"));
}

TEST(GgufArchitecture, VocabularyIsTheEmbeddings) {
  EXPECT_EQ(Error(WithU32("llama.vocab_size", 7)), "accepted");
  EXPECT_THAT(Error(WithU32("llama.vocab_size", 8)), HasSubstr("llama.vocab_size: expected 7 (rows of token_embd.weight), found 8"));
  TinyGguf tiny;
  tiny.omit_tensors = {"token_embd.weight"};
  EXPECT_THAT(Error(tiny), HasSubstr("token_embd.weight: expected the embedding, found no such tensor"));
  tiny = TinyGguf();
  tiny.dims["token_embd.weight"] = {9, 7};
  EXPECT_THAT(Error(tiny), HasSubstr("token_embd.weight: expected [vocabulary, 8] with at most"));
  tiny.dims["token_embd.weight"] = {8};
  EXPECT_THAT(Error(tiny), HasSubstr("token_embd.weight"));
}

}  // namespace
}  // namespace pith
