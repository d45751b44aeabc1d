// One function per block type of GGUF: numbers to the bytes of one block, with the scales that a weighted search finds (block_fit.h). Table
// and drivers: gguf_encoding.h; layouts: gguf_block_decoders.h and docs/formats/gguf_blocks.md. Pure and thread-safe.
//
//   x            the block's numbers, finite and within the range of F16
//   importance   how much the error of each matters, or nullptr
//   mean_square  of the whole row
#pragma once

#include <cstdint>

namespace pith {

void EncodeBlockQ8_0(const float* x, const float* importance, float mean_square, uint8_t* block);
void EncodeBlockQ4_0(const float* x, const float* importance, float mean_square, uint8_t* block);
void EncodeBlockQ4_1(const float* x, const float* importance, float mean_square, uint8_t* block);
void EncodeBlockQ5_0(const float* x, const float* importance, float mean_square, uint8_t* block);
void EncodeBlockQ5_1(const float* x, const float* importance, float mean_square, uint8_t* block);
void EncodeBlockQ4K(const float* x, const float* importance, float mean_square, uint8_t* block);
void EncodeBlockQ5K(const float* x, const float* importance, float mean_square, uint8_t* block);
void EncodeBlockQ6K(const float* x, const float* importance, float mean_square, uint8_t* block);

}  // namespace pith
