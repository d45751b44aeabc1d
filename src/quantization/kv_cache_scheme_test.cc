#include "quantization/kv_cache_scheme.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::HasSubstr;

TEST(KvCacheScheme, EveryRowIsFoundByNameAndByItsArguments) {
  for (const KvCacheScheme& row : KvCacheSchemes()) {
    EXPECT_TRUE(Validate(row.args).ok()) << row.name;
    EXPECT_EQ(FindKvCacheScheme(row.name)->args, row.args);
    const auto read = ParseKvCacheArgs(ToJson(row.args));
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(FindKvCacheScheme(*read)->name, row.name);
    EXPECT_EQ(row.NeedsCalibration(), row.args.type == QuantizationType::kFloat) << row.name;
  }
  EXPECT_EQ(FindKvCacheScheme("FP8-HEAD")->args.strategy, QuantizationStrategy::kAttnHead);
  EXPECT_EQ(ToJson(FindKvCacheScheme("fp8")->args),
            *ParseJson(R"({"num_bits": 8, "type": "float", "symmetric": true, "strategy": "tensor"})"));
}

TEST(KvCacheScheme, NamesTheKnownOnes) {
  const absl::Status name = FindKvCacheScheme("fp4").status();
  EXPECT_EQ(name.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(
      std::string(name.message()),
      HasSubstr("\"fp4\": not known; known are fp8 (fp8 static per tensor), fp8-head (fp8 static per attn_head), int8 (int8 dynamic"));
  const absl::Status args = FindKvCacheScheme(QuantizationArgs{}).status();
  EXPECT_THAT(std::string(args.message()), HasSubstr("a KV cache of int8 static per tensor is not supported"));
  EXPECT_THAT(std::string(FindKvCacheScheme(QuantizationArgs{.symmetric = false}).status().message()), HasSubstr("asymmetric int8"));
}

TEST(KvCacheScheme, HeadsAreOfCachesAlone) {
  const Json heads = *ParseJson(R"({"num_bits": 8, "type": "float", "strategy": "attn_head"})");
  EXPECT_EQ(ParseKvCacheArgs(heads)->strategy, QuantizationStrategy::kAttnHead);
  EXPECT_EQ(ParseQuantizationArgs(heads).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ParseKvCacheArgs(*ParseJson(R"({"strategy": "token", "dynamic": true})"))->strategy, QuantizationStrategy::kToken);
  const auto message = [](const char* text) { return std::string(ParseKvCacheArgs(*ParseJson(text)).status().message()); };
  EXPECT_THAT(message(R"({"strategy": "attn_head", "dynamic": true})"), HasSubstr("dynamic: expected false for strategy attn_head"));
  EXPECT_THAT(message(R"({"strategy": "attn_head", "bits": 8})"), HasSubstr("\"bits\": unknown key"));
  EXPECT_THAT(message(R"({"strategy": "attn_head", "type": "float", "symmetric": false})"), HasSubstr("symmetric: expected true"));
}

}  // namespace
}  // namespace pith
