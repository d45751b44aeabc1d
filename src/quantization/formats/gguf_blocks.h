// Blocks of GGUF (ggml) tensors: type table, and decoding into QuantizedTensor or floats, bit for bit what ggml computes.
// Byte-level page: docs/formats/gguf_blocks.md. All functions are pure and thread-safe.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "quantization/quantized_tensor.h"

namespace pith {

// One element type of a GGUF tensor. Blocks lie along the fastest dimension (a row of `in` elements).
// A quantized block decodes to codes, scales and (where has_min) minimums by the formula of quantized_tensor.h. The non-linear types
// IQ4_NL and IQ4_XS decode to 8-bit codes: the entries of their table of values.
struct GgufType {
  uint32_t id;             // ggml_type
  absl::string_view name;  // "Q4_K"
  int block_elements;      // 1 for a float type; rows are a multiple of it
  int block_bytes;
  DType dtype;         // of the elements of a float type, else of the stored scales
  int bits = 0;        // of a decoded code; 0 for a float type
  int group_size = 0;  // elements that share one scale; 0 for a float type
  bool has_min = false;
  // Decodes one block: block_elements codes and, per group, a scale and (has_min, else untouched) a minimum. Null for a float type.
  void (*decode_block)(const uint8_t* block, uint8_t* code, float* scale, float* min) = nullptr;
  // Where a block has f16 units that its integer scales and minimums are multiplied with; -1: it has none.
  int scale_unit_offset = -1, min_unit_offset = -1;

  bool is_float() const { return bits == 0; }
};

// THE TABLE: every type that can be read (gguf_blocks.cc).
absl::Span<const GgufType> GgufTypes();

// Errors: kUnimplemented naming the id (and its ggml name when it has one) and the readable types.
absl::StatusOr<const GgufType*> FindGgufType(uint32_t id);

// Bytes of a row of `in` elements. Errors: kDataLoss when `in` is no multiple of the block.
absl::StatusOr<int64_t> GgufRowBytes(const GgufType& type, int64_t in);

// An [out, in] matrix of a quantized type, rows one after the other. `bytes` need no alignment.
// Errors: kDataLoss for a size that does not fit or a scale that is not finite (with row and group); kInvalidArgument for a float type.
absl::StatusOr<QuantizedTensor> DecodeGgufBlocks(const GgufType& type, absl::Span<const uint8_t> bytes, int64_t out, int64_t in);

// `out.size()` elements of any type, as one row, straight to f32. Errors: as above.
absl::Status DequantizeGgufBlocks(const GgufType& type, absl::Span<const uint8_t> bytes, absl::Span<float> out);

}  // namespace pith
