// Numbers to blocks of GGUF tensors, the inverse of gguf_blocks.h: by a weighted search for scales and minimums, or, of codes that a block
// type holds as they are, without any change. Byte-level page and method: docs/formats/gguf_blocks.md. Pure and thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "quantization/formats/gguf_blocks.h"

namespace pith {

// Types that can be written, by name: F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q4_K Q5_K Q6_K. Errors: kUnimplemented listing them.
absl::StatusOr<const GgufType*> FindWritableGgufType(absl::string_view name);

// `type` where its blocks fill rows of `in` elements, else the type that stands in for it: Q5_0 for Q4_K, Q5_1 for Q5_K, Q8_0 for Q6_K,
// and F16 where rows are not whole blocks of 32 either.
const GgufType& GgufTypeForRows(const GgufType& type, int64_t in);

// One row. `importance`: how much the error of each column matters (mean square of its inputs), or empty. `bytes`: GgufRowBytes of it.
// The row's length is a multiple of the block. Errors: kDataLoss for a number that is not finite or beyond the type's range, with its
// index.
absl::Status EncodeGgufRow(const GgufType& type, absl::Span<const float> row, absl::Span<const float> importance,
                           absl::Span<uint8_t> bytes);

// nullptr when blocks of `type` hold codes of that form exactly (Q4_0 and Q8_0: symmetric 4 and 8 bits in groups of whole blocks), else why
// not. Scales that F16 rounds are found by PackGgufBlocks only.
const char* RefuseGgufPacking(const GgufType& type, int bits, QuantizationType code_type, int64_t group_size, bool symmetric);

// The same codes and scales as blocks, rows one after the other. Errors: kUnimplemented for what RefuseGgufPacking refuses, minimums, and
// for scales that F16 does not hold exactly.
absl::StatusOr<std::vector<uint8_t>> PackGgufBlocks(const GgufType& type, const QuantizedTensor& weight);

}  // namespace pith
