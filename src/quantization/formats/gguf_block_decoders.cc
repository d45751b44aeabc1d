#include "quantization/formats/gguf_block_decoders.h"

#include <cstring>

#include "base/float_types.h"

namespace pith {
namespace {

float LoadHalf(const uint8_t* bytes) {
  float16 half;
  std::memcpy(&half.bits, bytes, 2);
  return ToFloat(half);
}

uint32_t LoadU32(const uint8_t* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, 4);
  return value;
}

// 2 * kCount nibbles: first all low ones, then all high ones. Counts are constants, and codes lie apart from blocks, so that the loops
// become vector code.
template <int kCount> void UnpackNibbles(const uint8_t* __restrict packed, uint8_t* __restrict code) {
  for (int i = 0; i < kCount; ++i) code[i] = packed[i] & 0xF;
  for (int i = 0; i < kCount; ++i) code[kCount + i] = packed[i] >> 4;
}

// kPlanes runs of 32 elements whose bits lie over each other in 32 bytes: element i of run p has bits p * kBits.. of byte i.
// Adds them, shifted left by kShift, to the codes.
template <int kBits, int kPlanes, int kShift> void AddBitPlanes(const uint8_t* __restrict packed, uint8_t* __restrict code) {
  constexpr int kMask = (1 << kBits) - 1;
  for (int plane = 0; plane < kPlanes; ++plane) {
    for (int i = 0; i < 32; ++i) code[plane * 32 + i] |= static_cast<uint8_t>(((packed[i] >> (plane * kBits)) & kMask) << kShift);
  }
}

// The fifth bits of 32 codes.
void AddFifthBits(uint32_t bits, uint8_t* code) {
  for (int i = 0; i < 32; ++i) code[i] |= static_cast<uint8_t>(((bits >> i) & 1) << 4);
}

// Values of the 16 codes of IQ4_NL and IQ4_XS, plus 128.
constexpr uint8_t kNonLinearCodes[16] = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};

void MapNonLinear(uint8_t* code, int count) {
  for (int i = 0; i < count; ++i) code[i] = kNonLinearCodes[code[i]];
}

// The eight 6-bit scales and minimums of Q4_K and Q5_K: four of each in the low bits of bytes 0..7; the other four in the nibbles of
// bytes 8..11, with their two highest bits on top of bytes 0..7.
void DecodeScalesK(const uint8_t* block, float* scale, float* min) {
  const float d = LoadHalf(block), dmin = LoadHalf(block + 2);
  const uint8_t* s = block + 4;
  for (int g = 0; g < 4; ++g) {
    scale[g] = d * static_cast<float>(s[g] & 63);
    min[g] = dmin * static_cast<float>(s[g + 4] & 63);
    scale[g + 4] = d * static_cast<float>((s[g + 8] & 0xF) | ((s[g] >> 6) << 4));
    min[g + 4] = dmin * static_cast<float>((s[g + 8] >> 4) | ((s[g + 4] >> 6) << 4));
  }
}

}  // namespace

// f16 d; 16 bytes of nibbles. Weight d * (code - 8).
void DecodeBlockQ4_0(const uint8_t* block, uint8_t* code, float* scale, float*) {
  *scale = LoadHalf(block);
  UnpackNibbles<16>(block + 2, code);
}

// f16 d, m; 16 bytes of nibbles. Weight d * code + m.
void DecodeBlockQ4_1(const uint8_t* block, uint8_t* code, float* scale, float* min) {
  *scale = LoadHalf(block);
  *min = -LoadHalf(block + 2);
  UnpackNibbles<16>(block + 4, code);
}

// f16 d; u32 of fifth bits; 16 bytes of nibbles. Weight d * (code - 16).
void DecodeBlockQ5_0(const uint8_t* block, uint8_t* code, float* scale, float*) {
  *scale = LoadHalf(block);
  UnpackNibbles<16>(block + 6, code);
  AddFifthBits(LoadU32(block + 2), code);
}

// f16 d, m; u32 of fifth bits; 16 bytes of nibbles. Weight d * code + m.
void DecodeBlockQ5_1(const uint8_t* block, uint8_t* code, float* scale, float* min) {
  *scale = LoadHalf(block);
  *min = -LoadHalf(block + 2);
  UnpackNibbles<16>(block + 8, code);
  AddFifthBits(LoadU32(block + 4), code);
}

// f16 d; 32 signed bytes. Weight d * (code - 128), the codes being stored without the 128.
void DecodeBlockQ8_0(const uint8_t* block, uint8_t* code, float* scale, float*) {
  *scale = LoadHalf(block);
  for (int i = 0; i < 32; ++i) code[i] = static_cast<uint8_t>(block[2 + i] ^ 0x80);
}

// f16 d; 16 bytes of nibbles, indices of a table. Weight d * (code - 128).
void DecodeBlockIq4Nl(const uint8_t* block, uint8_t* code, float* scale, float*) {
  *scale = LoadHalf(block);
  UnpackNibbles<16>(block + 2, code);
  MapNonLinear(code, 32);
}

// 16 bytes: scale in the low nibble, minimum in the high one, per group of 16; 64 bytes of 2-bit codes; f16 d, dmin.
// Per 128 elements, bits 2k..2k+1 of 32 bytes hold elements 32k..32k+31.
void DecodeBlockQ2K(const uint8_t* block, uint8_t* code, float* scale, float* min) {
  const float d = LoadHalf(block + 80), dmin = LoadHalf(block + 82);
  for (int g = 0; g < 16; ++g) {
    scale[g] = d * static_cast<float>(block[g] & 0xF);
    min[g] = dmin * static_cast<float>(block[g] >> 4);
  }
  std::memset(code, 0, 256);
  for (int half = 0; half < 2; ++half) AddBitPlanes<2, 4, 0>(block + 16 + half * 32, code + half * 128);
}

// 32 bytes of third bits; 64 bytes of low 2 bits laid out as in Q2_K; 12 bytes of 6-bit scales (minus 32) per group of 16; f16 d.
// Element i has its third bit in byte i % 32 at bit i / 32.
void DecodeBlockQ3K(const uint8_t* block, uint8_t* code, float* scale, float*) {
  const uint8_t* scales = block + 96;
  const float d = LoadHalf(block + 108);
  for (int g = 0; g < 16; ++g) {
    const int low4 = (scales[g % 8] >> (g / 8 * 4)) & 0xF;
    const int high2 = (scales[8 + g % 4] >> (g / 4 * 2)) & 3;
    scale[g] = d * static_cast<float>((low4 | (high2 << 4)) - 32);
  }
  std::memset(code, 0, 256);
  for (int half = 0; half < 2; ++half) AddBitPlanes<2, 4, 0>(block + 32 + half * 32, code + half * 128);
  AddBitPlanes<1, 8, 2>(block, code);
}

// f16 d, dmin; 12 bytes of scales and minimums; 128 bytes of nibbles, in chunks of 32 bytes for 64 elements.
void DecodeBlockQ4K(const uint8_t* block, uint8_t* code, float* scale, float* min) {
  DecodeScalesK(block, scale, min);
  for (int chunk = 0; chunk < 4; ++chunk) UnpackNibbles<32>(block + 16 + chunk * 32, code + chunk * 64);
}

// f16 d, dmin; 12 bytes of scales and minimums; 32 bytes of fifth bits; 128 bytes of nibbles as in Q4_K.
// Element i has its fifth bit in byte i % 32 at bit i / 32.
void DecodeBlockQ5K(const uint8_t* block, uint8_t* code, float* scale, float* min) {
  DecodeScalesK(block, scale, min);
  for (int chunk = 0; chunk < 4; ++chunk) UnpackNibbles<32>(block + 48 + chunk * 32, code + chunk * 64);
  AddBitPlanes<1, 8, 4>(block + 16, code);
}

// 128 bytes of low nibbles; 64 bytes of high 2 bits; 16 signed scales, one per group of 16; f16 d.
// Per 128 elements: 64 bytes of nibbles (low ones first) and 32 bytes whose bits 2k..2k+1 belong to elements 32k..32k+31.
void DecodeBlockQ6K(const uint8_t* block, uint8_t* code, float* scale, float*) {
  const float d = LoadHalf(block + 208);
  for (int g = 0; g < 16; ++g) scale[g] = d * static_cast<float>(static_cast<int8_t>(block[192 + g]));
  for (int half = 0; half < 2; ++half) {
    UnpackNibbles<64>(block + half * 64, code + half * 128);
    AddBitPlanes<2, 4, 4>(block + 128 + half * 32, code + half * 128);
  }
}

// f16 d; u16 with the two high bits and 4 bytes with the low nibbles of eight 6-bit scales (minus 32); 128 bytes of nibbles, 16 bytes
// per group of 32, indices of a table.
void DecodeBlockIq4Xs(const uint8_t* block, uint8_t* code, float* scale, float*) {
  const float d = LoadHalf(block);
  const int scales_high = block[2] | (block[3] << 8);
  for (int g = 0; g < 8; ++g) {
    const int low4 = (block[4 + g / 2] >> (g % 2 * 4)) & 0xF;
    const int high2 = (scales_high >> (g * 2)) & 3;
    scale[g] = d * static_cast<float>((low4 | (high2 << 4)) - 32);
    UnpackNibbles<16>(block + 8 + g * 16, code + g * 32);
  }
  MapNonLinear(code, 256);
}

}  // namespace pith
