#include "cli/kv_cache_report.h"

#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(KvCacheReport, SaysWhatIsDeclared) {
  EXPECT_EQ(KvCacheLine({}), "");
  EXPECT_TRUE(ToJson(DeclaredKvCache{}).is_null());
  DeclaredKvCache declared{.dtype = KvDtype::kInt8, .scheme = QuantizationArgs{.strategy = QuantizationStrategy::kToken, .dynamic = true}};
  EXPECT_EQ(KvCacheLine(declared), "KV cache: declared int8 dynamic per token\n");
  EXPECT_EQ(ToJson(declared)["format"], "int8");
  declared = {.dtype = KvDtype::kFp8, .scheme = QuantizationArgs{.type = QuantizationType::kFloat}};
  EXPECT_EQ(KvCacheLine(declared), "KV cache: declared fp8 static per tensor, without scales: found at run time\n");
  declared.scales = {{.key = {0.5f, 0.5f}, .value = {0.25f, 0.25f}}, {.key = {2.0f, 2.0f}, .value = {0.125f, 0.125f}}};
  EXPECT_EQ(KvCacheLine(declared), "KV cache: declared fp8 static per tensor; scales of 2 layers: keys 0.5 to 2, values 0.125 to 0.25\n");
  EXPECT_EQ(ToJson(declared)["scales"][1]["keys"], OrderedJson::array({2.0f}));
  declared.scheme->strategy = QuantizationStrategy::kAttnHead;
  EXPECT_EQ(ToJson(declared)["scales"][1]["values"], OrderedJson::array({0.125f, 0.125f}));
}

}  // namespace
}  // namespace pith
