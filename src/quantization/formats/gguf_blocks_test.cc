#include "quantization/formats/gguf_blocks.h"

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using ::testing::HasSubstr;

const GgufType& Type(absl::string_view name) {
  for (const GgufType& type : GgufTypes()) {
    if (type.name == name) return type;
  }
  ADD_FAILURE() << "no type " << name;
  return GgufTypes()[0];
}

std::vector<uint8_t> Bytes(absl::string_view hex) {
  const std::string bytes = absl::HexStringToBytes(hex);
  return {bytes.begin(), bytes.end()};
}

std::vector<float> DequantizeRows(const QuantizedTensor& weight) {
  std::vector<float> values(static_cast<size_t>(weight.out * weight.in));
  for (int64_t o = 0; o < weight.out; ++o) {
    weight.DequantizeRow(o, absl::MakeSpan(values.data() + o * weight.in, static_cast<size_t>(weight.in)));
  }
  return values;
}

uint32_t Bits(float value) { return std::bit_cast<uint32_t>(value); }

// One block per type of random bytes, and the floats an independent decoder (the `gguf` Python package 0.19, NumPy) makes of it:
// SHA-256 of the little-endian f32 values, and the bits of the first and the last.
struct Vector {
  absl::string_view type, block, sha256;
  uint32_t first, last;
};
constexpr Vector kVectors[] = {
    {"Q4_0", "8fa0e5f1a94106a0956a26afbccdafe562f9", "9eb32aaae4dfd14e40d21b74d9e70c05b5a4e9217f6e6d1c8600892e1ec86aca", 0x3cdad000,
     0xbd7f4800},
    {"Q4_1", "ed10dd224551370e99b2d74c3427fa48d732a1df", "1d064471d38cea2a3d9505cf16bae04018460eb4cbd4c7129cad65aaf4821079", 0x3c867100,
     0x3cadd900},
    {"Q5_0", "4f1ba621f9bd0ccc21397c1ec795ca7748dc03d17a88", "7a959e1324cb82928703700daff54c14858c9637038f1d3c7741ff307fdfe05c", 0xbc69e000,
     0x3ce9e000},
    {"Q5_1", "1f1fe2a21f223f4192c58efd5185f0711ef7677a1f132a81", "d044e17c54caf480abd13e17acba1ca400286fdb23ffd569ba24812b786c9b41",
     0x3de4d400, 0x3d2cd000},
    {"Q8_0", "7da2c3ce3be4ebcab72f45b35223479f6e794d57037e2cfde9e15a7789781e3721a5",
     "5ef23e86d6fec9bb419dd3a3486f519421cc4026d0a0ae96b1fd2440a658c30a", 0x3f45e480, 0x3f939bc0},
    {"Q2_K",
     "e5a703291bdc5d1d8fc83f0b0bb4db71be572209851d3d24f4c0cf83fe4363f82f4759778955f6ced681cbea7179ced2c8f814a13472ff70"
     "ce369d8385452a44f318337f08cd1e614f235d3f83bc45fe03a124a0",
     "a3cc50d2750aaee288385ff7a792614e76b6b6c595f99905c41c41032d87a3e0", 0x3c7b4000, 0x3cdf3000},
    {"Q3_K",
     "9f7ec0e156f65a3322e791b880ee995e3f0d307d2fbaf400693a179e0d027ed4e58be7a9ebc28a271d43a78855638144eb6603f7b2725de1"
     "1fe6ac2f88a68182869793f0aad6ded8116e3ab51681c4a374fec70a68b3e4bdc92b387987416c17ec90963ec766888ab4b80eba929e",
     "2cc96e1b1cffad41ce66a35e5ebb8105dd2149ec7aa3da33c63daa7ca0da4d50", 0x3e036800, 0x80000000},
    {"Q4_K",
     "dd21c7a226cd7b5c30c8aba44d972299e8c7b41b9a1d2b0f180600a974d63b6332202c998e82b2522c49c4394c7d73265b6aaf61b288fbd0"
     "aecfa766616223611e764c93aa388ffabd0a6a6412b209971e2d827076f7e49ab8fa197271be53a3442b128cdad72bad0f8aeef42a0b9a26"
     "d74fc78f2562b8701097a55b5510543d27ed600de3200a6749307fd37899c118",
     "6effb8e3a74e2a96f03e3eba88ae6adf6a0849834c9087484cf68a1e91fd3148", 0x4083bc00, 0x3f543a00},
    {"Q5_K",
     "d81ef69a3ccdf8ab8ab4a6039954e84cbe3b3f7f1183c3df8375c517b4e786a9aadf7488f892b12191387ad86aca56d8531c927b931fe8f1"
     "6e795b9b331767e712dbe8f5331dd9917f01e64710dd3c25f4d21690a049453135550ec0193a8bed1783d53ec944658d1d28960c44b0382e"
     "93438e60788d51e279a131f8130b3ea4bd2f5d95e57bd791436d840f4e6654608135bbfb885d346959a49b36402a4f3dcc489fb6511fbe09"
     "e5d72bf834e04fe0",
     "97b64ece29c977d4541091bfa50d8dcd564bba6efb9f3459191d7f08227afa64", 0x3f9e55c0, 0x410d5eb0},
    {"Q6_K",
     "a8b8287a6f4b795209575d7277d456c0f6e81a0e584d730660f56bb8b588475f7066c1cd7109c5079a933ee857db751ff223726ad90697f7"
     "49f7c61bd80163a8c9a356ba91d79f6d24ee3a14ebd41386d8faef6e9e6c70df41dba9aeb5301e5824b7db0e504f1d970686934768f005af"
     "0d5a23ddb465fc5a489b43e76ea3e384969be487a440e7c3ea5204cabbf9bfe8e648caff7704ac26d227a069c392f4eeb361c24ef3665301"
     "78b479933822c3c0cf6b3cbeb4af7ecff21cd3a408f80223e393ddd808453d6bad90efd8aba2b4d05113",
     "c490dcf47854c4e23a9f5b028c954982c56f617463847037c3cef77f8062f12b", 0xbe542d00, 0x3f83b200},
    {"IQ4_NL", "1da5a7039a633f7c349903cb463dc4f3ea33", "0a2e142bacac107aa83bdd603ae0c49aef81d3b8b062cc2d8305e1191a3c919f", 0x3e4c8800,
     0x3fa62e80},
    {"IQ4_XS",
     "8f9d0c3bade3f6390f4a62312e48d232ddc3f3e848e3f55cb7e22d1bad8ded2dd7fb1065837b97585cae654f2c42b8f27265d7ddd7eec592"
     "3eb486fc6bb30e571a96372332a38245e6a7dc162ddcb8f3d54a0f38ee52c9719952c3338026fbfa0adf76282c4bf9838c2557f3b7246b85"
     "2bab20e604ae83e5385d98c4690126be98f09c9384aaa594",
     "93a19a60ea2815977d4df16c913e9190fe0a739055a3048e0e6760f711980a0e", 0x413a7934, 0x4002f970},
};

TEST(GgufBlocks, DecodesEveryTypeAsTheIndependentDecoder) {
  int quantized_types = 0;
  for (const GgufType& type : GgufTypes()) quantized_types += type.is_float() ? 0 : 1;
  EXPECT_EQ(std::size(kVectors), quantized_types);
  for (const Vector& vector : kVectors) {
    SCOPED_TRACE(vector.type);
    const GgufType& type = Type(vector.type);
    const std::vector<uint8_t> bytes = Bytes(vector.block);
    const absl::StatusOr<QuantizedTensor> weight = DecodeGgufBlocks(type, bytes, 1, type.block_elements);
    ASSERT_TRUE(weight.ok()) << weight.status();
    const std::vector<float> values = DequantizeRows(*weight);
    EXPECT_EQ(Bits(values.front()), vector.first);
    EXPECT_EQ(Bits(values.back()), vector.last);
    EXPECT_EQ(Sha256Hex({reinterpret_cast<const char*>(values.data()), values.size() * 4}), vector.sha256);

    // Scales and minimums are integers of 8 bits times the units.
    EXPECT_EQ(weight->unit_size, type.block_elements > type.group_size ? type.block_elements : 0);
    EXPECT_EQ(weight->scale_unit.empty(), weight->unit_size == 0);
    EXPECT_EQ(weight->min_unit.empty(), weight->unit_size == 0 || !type.has_min);
    const auto expect_products = [](const std::vector<float>& products, const std::vector<float>& units) {
      for (size_t i = 0; i < products.size() && !units.empty(); ++i) {
        const float code = std::round(products[i] / units[0]);
        EXPECT_LE(std::abs(code), 127.0f);
        EXPECT_EQ(code * units[0], products[i]) << i;
      }
    };
    expect_products(weight->scale, weight->scale_unit);
    expect_products(weight->min, weight->min_unit);

    std::vector<float> direct(values.size());
    ASSERT_TRUE(DequantizeGgufBlocks(type, bytes, absl::MakeSpan(direct)).ok());
    EXPECT_EQ(std::memcmp(direct.data(), values.data(), values.size() * 4), 0);
  }
}

// Golden vectors made with ggml's own C code.
TEST(GgufBlocks, MatchesGgmlBitForBit) {
  const std::string path = SharedPath("golden/gguf_blocks.json");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  std::ifstream file(path);
  const absl::StatusOr<Json> golden = ParseJson(std::string(std::istreambuf_iterator<char>(file), {}));
  ASSERT_TRUE(golden.ok()) << golden.status();
  ASSERT_EQ((*golden)["cases"].size(), 14);
  for (const Json& test_case : (*golden)["cases"]) {
    const std::string name = test_case["type"];
    SCOPED_TRACE(name);
    const std::vector<uint8_t> bytes = Bytes(test_case["bytes"].get<std::string>());
    const std::string expected = test_case["dequant_f32"];
    ASSERT_EQ(expected.size(), 256 * 8);
    // Two rows of 128 for the small blocks, one row of 256 for the large ones.
    const int64_t rows = Type(name).block_elements == 32 ? 2 : 1;
    const absl::StatusOr<QuantizedTensor> weight = DecodeGgufBlocks(Type(name), bytes, rows, 256 / rows);
    ASSERT_TRUE(weight.ok()) << weight.status();
    EXPECT_EQ(weight->format, name);
    EXPECT_DOUBLE_EQ(weight->stored_bits_per_weight, bytes.size() * 8.0 / 256);
    const std::vector<float> values = DequantizeRows(*weight);
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(Bits(values[i]), std::stoul(expected.substr(i * 8, 8), nullptr, 16)) << "element " << i;
    }
    std::vector<float> direct(256);
    ASSERT_TRUE(DequantizeGgufBlocks(Type(name), bytes, absl::MakeSpan(direct)).ok());
    EXPECT_EQ(std::memcmp(direct.data(), values.data(), 1024), 0);
  }
}

TEST(GgufBlocks, ConvertsFloatTypes) {
  std::vector<float> values(2);
  // 1.5 and -2 as f16, bf16 and f32, at an odd address.
  std::vector<uint8_t> half = {0, 0x00, 0x3E, 0x00, 0xC0};
  ASSERT_TRUE(DequantizeGgufBlocks(Type("F16"), absl::MakeConstSpan(half).subspan(1), absl::MakeSpan(values)).ok());
  EXPECT_EQ(values, (std::vector<float>{1.5f, -2.0f}));
  std::vector<uint8_t> bfloat = {0, 0xC0, 0x3F, 0x00, 0xC0};
  ASSERT_TRUE(DequantizeGgufBlocks(Type("BF16"), absl::MakeConstSpan(bfloat).subspan(1), absl::MakeSpan(values)).ok());
  EXPECT_EQ(values, (std::vector<float>{1.5f, -2.0f}));
  std::vector<uint8_t> full = {0, 0, 0, 0xC0, 0x3F, 0, 0, 0, 0xC0};
  ASSERT_TRUE(DequantizeGgufBlocks(Type("F32"), absl::MakeConstSpan(full).subspan(1), absl::MakeSpan(values)).ok());
  EXPECT_EQ(values, (std::vector<float>{1.5f, -2.0f}));
}

TEST(GgufBlocks, TableIsConsistent) {
  for (const GgufType& type : GgufTypes()) {
    SCOPED_TRACE(type.name);
    const absl::StatusOr<const GgufType*> found = FindGgufType(type.id);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ((*found)->name, type.name);
    if (type.is_float()) {
      EXPECT_EQ(type.block_bytes, ByteSize(type.dtype));
      EXPECT_EQ(type.decode_block, nullptr);
    } else {
      EXPECT_EQ(type.block_elements % type.group_size, 0);
      EXPECT_NE(type.decode_block, nullptr);
    }
  }
}

TEST(GgufBlocks, RowBytes) {
  EXPECT_EQ(*GgufRowBytes(Type("Q4_K"), 512), 288);
  EXPECT_EQ(*GgufRowBytes(Type("Q8_0"), 64), 68);
  EXPECT_EQ(*GgufRowBytes(Type("F16"), 3), 6);
  const absl::Status bad = GgufRowBytes(Type("Q4_K"), 576).status();
  EXPECT_EQ(bad.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(bad.message(), "Q4_K: expected a row length that is a multiple of 256, found 576");
  EXPECT_FALSE(GgufRowBytes(Type("Q4_K"), -256).ok());
}

TEST(GgufBlocks, RefusesUnknownTypesByName) {
  const absl::Status known_to_ggml = FindGgufType(16).status();
  EXPECT_EQ(known_to_ggml.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(known_to_ggml.message(), HasSubstr("GGUF type 16 (IQ2_XXS): not supported; readable are F32 F16 BF16 Q4_0"));
  EXPECT_THAT(FindGgufType(4000000000u).status().message(), HasSubstr("GGUF type 4000000000 (not a type of ggml)"));
}

TEST(GgufBlocks, RefusesSizesThatDoNotFit) {
  const std::vector<uint8_t> bytes(36);  // two blocks of Q4_0
  EXPECT_TRUE(DecodeGgufBlocks(Type("Q4_0"), bytes, 2, 32).ok());
  EXPECT_FALSE(DecodeGgufBlocks(Type("Q4_0"), std::vector<uint8_t>(37), 2, 32).ok());
  EXPECT_EQ(DecodeGgufBlocks(Type("Q4_0"), bytes, 3, 32).status().message(), "Q4_0: expected 3 x 18 bytes, found 36");
  EXPECT_FALSE(DecodeGgufBlocks(Type("Q4_0"), bytes, 1, 32).ok());
  EXPECT_FALSE(DecodeGgufBlocks(Type("Q4_0"), absl::MakeConstSpan(bytes).subspan(1), 2, 32).ok());
  EXPECT_FALSE(DecodeGgufBlocks(Type("Q4_0"), bytes, -2, 32).ok());
  EXPECT_FALSE(DecodeGgufBlocks(Type("Q4_0"), bytes, int64_t{1} << 61, 32).ok());
  EXPECT_EQ(DecodeGgufBlocks(Type("F16"), bytes, 1, 18).status().code(), absl::StatusCode::kInvalidArgument);
  std::vector<float> values(64);
  EXPECT_EQ(DequantizeGgufBlocks(Type("Q4_0"), absl::MakeConstSpan(bytes).subspan(2), absl::MakeSpan(values)).message(),
            "Q4_0: expected 36 bytes for 64 elements, found 34");
}

TEST(GgufBlocks, RefusesScalesThatAreNotFinite) {
  std::vector<uint8_t> bytes(18 * 4);
  bytes[18 * 3] = 0x00;
  bytes[18 * 3 + 1] = 0x7C;  // infinity as f16, in row 1, group 1
  const absl::Status status = DecodeGgufBlocks(Type("Q4_0"), bytes, 2, 64).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("Q4_0 row 1, group 1: expected a finite scale and minimum, found inf"));
  std::vector<float> values(128);
  EXPECT_FALSE(DequantizeGgufBlocks(Type("Q4_0"), bytes, absl::MakeSpan(values)).ok());

  std::vector<uint8_t> with_min(20);
  with_min[3] = 0x7E;  // the minimum is NaN
  EXPECT_THAT(DecodeGgufBlocks(Type("Q4_1"), with_min, 1, 32).status().message(), HasSubstr("found 0 and "));
}

}  // namespace
}  // namespace pith
