// One function per block type of GGUF: bytes of one block to codes, and scales (and minimums) per group, in the order and with the
// roundings of ggml, so that the floats made from them are the same bits. Table and drivers: gguf_blocks.h.
// Source: ggml `dequantize_row_*`; docs/formats/gguf_blocks.md. All functions are pure and thread-safe; pointers need no alignment.
#pragma once

#include <cstdint>

namespace pith {

// Blocks of 32: one f16 scale, and for the _1 types an f16 minimum.
void DecodeBlockQ4_0(const uint8_t* block, uint8_t* code, float* scale, float* min);
void DecodeBlockQ4_1(const uint8_t* block, uint8_t* code, float* scale, float* min);
void DecodeBlockQ5_0(const uint8_t* block, uint8_t* code, float* scale, float* min);
void DecodeBlockQ5_1(const uint8_t* block, uint8_t* code, float* scale, float* min);
void DecodeBlockQ8_0(const uint8_t* block, uint8_t* code, float* scale, float* min);
void DecodeBlockIq4Nl(const uint8_t* block, uint8_t* code, float* scale, float* min);

// Super-blocks of 256: f16 super-scales and small integer scales per group of 16 or 32.
void DecodeBlockQ2K(const uint8_t* block, uint8_t* code, float* scale, float* min);
void DecodeBlockQ3K(const uint8_t* block, uint8_t* code, float* scale, float* min);
void DecodeBlockQ4K(const uint8_t* block, uint8_t* code, float* scale, float* min);
void DecodeBlockQ5K(const uint8_t* block, uint8_t* code, float* scale, float* min);
void DecodeBlockQ6K(const uint8_t* block, uint8_t* code, float* scale, float* min);
void DecodeBlockIq4Xs(const uint8_t* block, uint8_t* code, float* scale, float* min);

}  // namespace pith
