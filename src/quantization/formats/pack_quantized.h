// The stored format "pack-quantized": unsigned codes of 2 to 8 bits as a dense little-endian bit stream in 32-bit words, one stream per
// row. Element i lies at bit i * bits of its row; 32 elements fill exactly `bits` words, so odd widths straddle words; the last word is
// padded with zero bits. Source: compressed-tensors `pack_to_int32`; docs/formats/compressed_tensors.md.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "quantization/formats/format_table.h"

namespace pith {

// 32-bit words of `count` codes: ceil(count * bits / 32).
int64_t PackedWords(int64_t count, int bits);

// Packs codes (each below 2^bits) into words; words.size() == PackedWords(codes.size(), bits).
void PackBits(absl::Span<const uint8_t> codes, int bits, absl::Span<uint32_t> words);

// The inverse. `words` points to PackedWords(codes.size(), bits) little-endian words and needs no alignment.
void UnpackBits(const uint8_t* words, int bits, absl::Span<uint8_t> codes);

// The row of the format table.
extern const WeightFormat kPackQuantized;

}  // namespace pith
