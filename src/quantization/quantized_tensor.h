// One quantized weight matrix, whatever container it came from (compressed-tensors, GPTQ, AWQ, GGUF blocks).
//
//   weight[o][i] = scale[o][g] * (code[o][i] - zero_point[o][g])      when `min` is empty
//   weight[o][i] = scale[o][g] *  code[o][i] - min[o][g]              when it is not (GGUF Q4_1, Q5_1, Q2_K, Q4_K, Q5_K)
//   weight[o][i] = scale[o][g] * e4m3(code[o][i])                     type kFloat, which has neither zero points nor min
// with g = i / group_size. Containers decode into it once at load; kernels prepack from it. A new container never needs a new kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/float_types.h"
#include "quantization/quantization_args.h"
#include "tensor/tensor.h"

namespace pith {

struct QuantizedTensor {
  int64_t out = 0;  // rows
  int64_t in = 0;   // columns
  int bits = 8;     // 2..8: codes lie in [0, 2^bits)
  QuantizationType type = QuantizationType::kInt;
  int64_t group_size = 0;           // divides `in`; == in for per-channel (per-tensor scales are repeated per row)
  std::vector<uint8_t> code;        // [out, in]
  std::vector<float> scale;         // [out, in / group_size]
  std::vector<uint8_t> zero_point;  // [out, in / group_size], or empty: 2^(bits-1) everywhere
  std::vector<float> min;           // [out, in / group_size], or empty
  // Where the container stores scales (and mins) as integers in [-128, 127] times a unit that unit_size columns share (GGUF's K types):
  // the units, which f16 holds exactly, so that a kernel can keep the integers. Else empty.
  int64_t unit_size = 0;          // divides `in`, a multiple of group_size
  std::vector<float> scale_unit;  // [out, in / unit_size], or empty
  std::vector<float> min_unit;    // the same where there is a min
  // LLM.int8(): columns that are kept in bf16 beside the codes, which hold them too, less exactly. They take the place of the formula.
  std::vector<int32_t> outlier_column;   // ascending, in [0, in)
  std::vector<bfloat16> outlier_weight;  // [out, outlier_column.size()]
  std::string format;                    // how it was stored: "pack-quantized", "int-quantized", "Q4_K", ...
  DType scale_dtype = DType::kF32;       // how scales were stored
  double stored_bits_per_weight = 0;     // codes, scales, zero points: bytes in the file * 8 / (out * in)

  int64_t num_groups() const { return in / group_size; }
  int default_zero_point() const { return 1 << (bits - 1); }
  // Row `o` as f32, exactly the formula above evaluated in f32, with the outlier columns in place. `out_row` has `in` floats.
  void DequantizeRow(int64_t o, absl::Span<float> out_row) const;
};

}  // namespace pith
