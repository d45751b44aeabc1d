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
struct GgufType {
  uint32_t id;                // ggml_type
  absl::string_view name;     // "Q4_K"
  int block_elements;         // 1 for F32, F16, BF16; rows must be a multiple of it
  int block_bytes;
  int bits;                   // of a decoded code; 0: a float type (see `dtype`)
  int group_size;             // elements that share one scale; 0 for a float type
  DType dtype;                // of the elements of a float type, otherwise of the stored scales
  // Decodes one block: codes [block_elements], and per group a scale and (asymmetric types, else nullptr) the min to subtract.
  void (*decode_block)(const uint8_t* block, uint8_t* code, float* scale, float* min);
  bool has_min;

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

// `out.size()` elements of any type straight to f32. Errors: as above.
absl::Status DequantizeGgufBlocks(const GgufType& type, absl::Span<const uint8_t> bytes, absl::Span<float> out);

}  // namespace pith
