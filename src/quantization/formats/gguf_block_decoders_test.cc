#include "quantization/formats/gguf_block_decoders.h"

#include <cstring>
#include <vector>

#include "gtest/gtest.h"

// Blocks written by hand, one bit or nibble at a time, so that every field is seen where the format page puts it.
namespace pith {
namespace {

constexpr uint8_t kHalfOne[2] = {0x00, 0x3C};        // 1.0 as f16
constexpr uint8_t kHalfTwo[2] = {0x00, 0x40};        // 2.0
constexpr uint8_t kHalfMinusHalf[2] = {0x00, 0xB8};  // -0.5

struct Decoded {
  std::vector<uint8_t> code;
  std::vector<float> scale, min;
};

Decoded Decode(void (*decode)(const uint8_t*, uint8_t*, float*, float*), const std::vector<uint8_t>& block, size_t elements,
               size_t groups) {
  Decoded decoded{std::vector<uint8_t>(elements), std::vector<float>(groups), std::vector<float>(groups, 77.0f)};
  decode(block.data(), decoded.code.data(), decoded.scale.data(), decoded.min.data());
  return decoded;
}

void Put(std::vector<uint8_t>& block, size_t offset, const uint8_t (&half)[2]) { std::memcpy(&block[offset], half, 2); }

TEST(GgufBlockDecoders, Q4_0LowNibblesAreTheFirstHalf) {
  std::vector<uint8_t> block(18);
  Put(block, 0, kHalfMinusHalf);
  block[2] = 0xA3;
  block[17] = 0x7F;
  const Decoded decoded = Decode(DecodeBlockQ4_0, block, 32, 1);
  EXPECT_EQ(decoded.scale[0], -0.5f);
  EXPECT_EQ(decoded.min[0], 77.0f);  // untouched
  EXPECT_EQ(decoded.code[0], 3);
  EXPECT_EQ(decoded.code[16], 10);
  EXPECT_EQ(decoded.code[15], 15);
  EXPECT_EQ(decoded.code[31], 7);
  EXPECT_EQ(decoded.code[1], 0);
}

TEST(GgufBlockDecoders, Q4_1AndQ5_1NegateTheMinimum) {
  std::vector<uint8_t> block(20);
  Put(block, 0, kHalfOne);
  Put(block, 2, kHalfTwo);
  EXPECT_EQ(Decode(DecodeBlockQ4_1, block, 32, 1).min[0], -2.0f);
  block.resize(24);
  EXPECT_EQ(Decode(DecodeBlockQ5_1, block, 32, 1).min[0], -2.0f);
}

TEST(GgufBlockDecoders, Q5FifthBitsAreInOrder) {
  std::vector<uint8_t> block(22);
  Put(block, 0, kHalfOne);
  block[2] = 0x02;  // element 1
  block[5] = 0x80;  // element 31
  block[6 + 1] = 0x04;
  const Decoded q5_0 = Decode(DecodeBlockQ5_0, block, 32, 1);
  EXPECT_EQ(q5_0.code[1], 16 + 4);
  EXPECT_EQ(q5_0.code[31], 16);
  EXPECT_EQ(q5_0.code[0], 0);
  EXPECT_EQ(q5_0.code[17], 0);

  std::vector<uint8_t> with_min(24);
  with_min[4] = 0x02;
  with_min[8 + 1] = 0x30;
  const Decoded q5_1 = Decode(DecodeBlockQ5_1, with_min, 32, 1);
  EXPECT_EQ(q5_1.code[1], 16);
  EXPECT_EQ(q5_1.code[17], 3);
}

TEST(GgufBlockDecoders, Q8_0AndNonLinearCodesAreOffsetBy128) {
  std::vector<uint8_t> block(34);
  Put(block, 0, kHalfTwo);
  block[2] = 0x80;   // -128
  block[3] = 0xFF;   // -1
  block[33] = 0x7F;  // 127
  const Decoded q8 = Decode(DecodeBlockQ8_0, block, 32, 1);
  EXPECT_EQ(q8.scale[0], 2.0f);
  EXPECT_EQ(q8.code[0], 0);
  EXPECT_EQ(q8.code[1], 127);
  EXPECT_EQ(q8.code[2], 128);
  EXPECT_EQ(q8.code[31], 255);

  std::vector<uint8_t> non_linear(18);
  non_linear[2] = 0xF0;
  const Decoded iq4 = Decode(DecodeBlockIq4Nl, non_linear, 32, 1);
  EXPECT_EQ(iq4.code[0], 128 - 127);
  EXPECT_EQ(iq4.code[16], 128 + 113);
}

// Group 0 and group 4 share byte 0 of the scales; group 4's low bits lie in byte 8.
TEST(GgufBlockDecoders, Q4KScalesOfSixBits) {
  std::vector<uint8_t> block(144);
  Put(block, 0, kHalfOne);
  Put(block, 2, kHalfTwo);
  block[4 + 0] = 0b10'000101;  // scale[0] = 5, high bits of scale[4] = 2
  block[4 + 4] = 0b01'000011;  // min[0] = 3, high bits of min[4] = 1
  block[4 + 8] = 0x7C;         // low bits of scale[4] = 12, of min[4] = 7
  block[4 + 3] = 63;           // scale[3]
  block[16] = 0x91;            // elements 0 and 32
  block[16 + 32] = 0x28;       // elements 64 and 96
  const Decoded decoded = Decode(DecodeBlockQ4K, block, 256, 8);
  EXPECT_EQ(decoded.scale, (std::vector<float>{5, 0, 0, 63, 44, 0, 0, 0}));
  EXPECT_EQ(decoded.min, (std::vector<float>{6, 0, 0, 0, 46, 0, 0, 0}));
  EXPECT_EQ(decoded.code[0], 1);
  EXPECT_EQ(decoded.code[32], 9);
  EXPECT_EQ(decoded.code[64], 8);
  EXPECT_EQ(decoded.code[96], 2);
}

TEST(GgufBlockDecoders, Q5KFifthBits) {
  std::vector<uint8_t> block(176);
  Put(block, 0, kHalfOne);
  block[16 + 3] = 0b1000'0110;  // elements 32 * 1 + 3, 32 * 2 + 3, 32 * 7 + 3
  block[48 + 3] = 0x50;         // element 35
  const Decoded decoded = Decode(DecodeBlockQ5K, block, 256, 8);
  EXPECT_EQ(decoded.code[3], 0);
  EXPECT_EQ(decoded.code[35], 16 + 5);
  EXPECT_EQ(decoded.code[67], 16);
  EXPECT_EQ(decoded.code[227], 16);
}

TEST(GgufBlockDecoders, Q6KHighBitsAndSignedScales) {
  std::vector<uint8_t> block(210);
  Put(block, 208, kHalfMinusHalf);
  block[192] = 0xFE;  // -2
  block[192 + 15] = 100;
  block[0] = 0x4B;             // elements 0 and 64
  block[32] = 0x5C;            // elements 32 and 96
  block[64] = 0x06;            // element 128
  block[128] = 0b11'10'01'00;  // two high bits of elements 0, 32, 64, 96
  block[160] = 0b01;           // of element 128
  const Decoded decoded = Decode(DecodeBlockQ6K, block, 256, 16);
  EXPECT_EQ(decoded.scale[0], 1.0f);
  EXPECT_EQ(decoded.scale[15], -50.0f);
  EXPECT_EQ(decoded.code[0], 11);
  EXPECT_EQ(decoded.code[32], 12 + 16);
  EXPECT_EQ(decoded.code[64], 4 + 32);
  EXPECT_EQ(decoded.code[96], 5 + 48);
  EXPECT_EQ(decoded.code[128], 6 + 16);
}

TEST(GgufBlockDecoders, Q2KTwoBitPlanes) {
  std::vector<uint8_t> block(84);
  Put(block, 80, kHalfOne);
  Put(block, 82, kHalfTwo);
  block[1] = 0x5A;                // group 1: scale 10, min 5
  block[16 + 2] = 0b11'10'01'00;  // elements 2, 34, 66, 98
  block[16 + 32 + 2] = 0b10;      // element 130
  const Decoded decoded = Decode(DecodeBlockQ2K, block, 256, 16);
  EXPECT_EQ(decoded.scale[1], 10.0f);
  EXPECT_EQ(decoded.min[1], 10.0f);
  EXPECT_EQ(decoded.code[2], 0);
  EXPECT_EQ(decoded.code[34], 1);
  EXPECT_EQ(decoded.code[66], 2);
  EXPECT_EQ(decoded.code[98], 3);
  EXPECT_EQ(decoded.code[130], 2);
}

TEST(GgufBlockDecoders, Q3KThirdBitsAndScales) {
  std::vector<uint8_t> block(110);
  Put(block, 108, kHalfOne);
  block[5] = 0b1000'0010;         // third bits of elements 32 + 5 and 224 + 5
  block[32 + 5] = 0b00'00'11'00;  // low bits of element 37
  block[96 + 0] = 0x21;           // low bits of scales 0 and 8
  block[96 + 8] = 0b01'00'00'11;  // high bits of scales 0, 4, 8, 12
  const Decoded decoded = Decode(DecodeBlockQ3K, block, 256, 16);
  EXPECT_EQ(decoded.scale[0], 1 + 48 - 32);
  EXPECT_EQ(decoded.scale[8], 2 - 32);
  EXPECT_EQ(decoded.scale[12], 16 - 32);
  EXPECT_EQ(decoded.scale[4], -32);
  EXPECT_EQ(decoded.code[37], 7);
  EXPECT_EQ(decoded.code[229], 4);
  EXPECT_EQ(decoded.code[5], 0);
}

TEST(GgufBlockDecoders, Iq4XsScales) {
  std::vector<uint8_t> block(136);
  Put(block, 0, kHalfOne);
  block[3] = 0b01'00'00'00;  // high bits of scale 7
  block[4 + 3] = 0x9A;       // low bits of scales 6 and 7
  block[8 + 7 * 16] = 0x10;  // elements 224 and 240
  const Decoded decoded = Decode(DecodeBlockIq4Xs, block, 256, 8);
  EXPECT_EQ(decoded.scale[6], 10 - 32);
  EXPECT_EQ(decoded.scale[7], 9 + 16 - 32);
  EXPECT_EQ(decoded.scale[0], -32);
  EXPECT_EQ(decoded.code[224], 128 - 127);
  EXPECT_EQ(decoded.code[240], 128 - 104);
}

}  // namespace
}  // namespace pith
