#include "model/prepack_description.h"

#include "base/json.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::HasSubstr;

PrepackDescription Example() {
  PrepackDescription layers;
  PrepackedLayer& qkv = layers["layers.0.q_proj"];
  qkv.parts = {{.name = "layers.0.q_proj",
                .packing = "pack-quantized",
                .scheme = "W4A16",
                .stored_bits = 4.0 + 1.0 / 3,
                .scale_dtype = "bf16",
                .stored_bytes = 12345},
               {.name = "layers.0.k_proj", .packing = "Q4_K", .scheme = "Q4_K", .stored_bits = 4.5}};
  qkv.matrices = {{{.n = 48,
                    .k = 64,
                    .group_size = 32,
                    .bits = 4,
                    .has_min = true,
                    .scale = GemmScale::kI8,
                    .unit_size = 64,
                    .activation = GemmActivation::kInt16,
                    .activation_group = 32},
                   "gemm_int16_w4g_f32__scalar"}};
  layers["embed"].parts = {{.name = "embed", .packing = "bf16", .scheme = "BF16", .stored_bits = 16}};
  return layers;
}

TEST(PrepackDescription, IsReadBackAsItWas) {
  const PrepackDescription layers = Example();
  const auto read = ParsePrepackDescription(MakePrepackDescription(layers));
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 2u);
  const PrepackedLayer& expected = layers.at("layers.0.q_proj");
  const PrepackedLayer& qkv = read->at("layers.0.q_proj");
  ASSERT_EQ(qkv.parts.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(qkv.parts[i].name, expected.parts[i].name);
    EXPECT_EQ(qkv.parts[i].packing, expected.parts[i].packing);
    EXPECT_EQ(qkv.parts[i].scheme, expected.parts[i].scheme);
    EXPECT_EQ(qkv.parts[i].scale_dtype, expected.parts[i].scale_dtype);
    EXPECT_EQ(qkv.parts[i].stored_bits, expected.parts[i].stored_bits);
    EXPECT_EQ(qkv.parts[i].stored_bytes, expected.parts[i].stored_bytes);
  }
  ASSERT_EQ(qkv.matrices.size(), 1u);
  EXPECT_EQ(qkv.matrices[0].kernel, "gemm_int16_w4g_f32__scalar");
  EXPECT_EQ(FieldsOf(qkv.matrices[0].problem), FieldsOf(expected.matrices[0].problem));
  EXPECT_TRUE(read->at("embed").matrices.empty());
}

// Every way in which one field can be wrong is refused by its name.
TEST(PrepackDescription, FieldsAreCheckedOneByOne) {
  const struct {
    const char* pointer;  // JSON pointer below the layer
    Json value;
    const char* message;
  } kCases[] = {{"/parts", Json::array(), "parts: expected at least one"},
                {"/parts", 7, "parts: expected an array"},
                {"/parts/0/name", "other", "layers.0.q_proj: expected the name of its first part, found other"},
                {"/parts/0/scheme", "W4\n", "parts[0]: scheme: expected printable text"},
                {"/parts/1/stored_bits", -1, "parts[1]: \"stored_bits\": expected a number in [0, 1024]"},
                {"/parts/0/stored_bytes", -1, "\"stored_bytes\": expected an integer"},
                {"/matrices", nullptr, "matrices: expected an array"},
                {"/matrices/0", 3, "matrices[0]: \"kernel\": expected a string"},
                {"/matrices/0/n", 0, "\"n\": expected an integer in [1,"},
                {"/matrices/0/k", 1.5, "\"k\": expected an integer"},
                {"/matrices/0/bits", 17, "\"bits\": expected an integer in [1, 16]"},
                {"/matrices/0/scale", 4, "\"scale\": expected an integer in [0, 3]"},
                {"/matrices/0/activation", 4, "\"activation\": expected an integer in [0, 3]"},
                {"/matrices/0/has_min", 2, "\"has_min\": expected an integer in [0, 1]"},
                {"/matrices/0/group_size", -32, "\"group_size\": expected an integer"}};
  const Json good = *ParseJson(MakePrepackDescription(Example()));
  for (const auto& c : kCases) {
    Json bad = good;
    bad["layers.0.q_proj"][Json::json_pointer(c.pointer)] = c.value;
    const auto read = ParsePrepackDescription(DumpJson(bad));
    EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss) << c.pointer;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(c.message));
  }
  for (const char* text : {"", "[]", "{\"a\":{}}", "{\"a\":{},\"a\":{}}", "{\"a\":"})
    EXPECT_FALSE(ParsePrepackDescription(text).ok()) << text;
}

}  // namespace
}  // namespace pith
