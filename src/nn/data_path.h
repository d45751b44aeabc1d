// The declared data path: how one tensor is stored, with which formats it is multiplied, and which kernel consumes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nn/linear_kernel.h"
#include "quantization/quantized_tensor.h"
#include "tensor/tensor.h"

namespace pith {

// How one linear layer (or the embedding) is stored and run: a row of `pith inspect`.
struct TensorDataPath {
  std::string name;  // "model.layers.0.self_attn.q_proj"
  int64_t out = 0, in = 0;
  std::string packing;      // stored format: "bf16", "f32 rounded to bf16", "pack-quantized", "Q4_K", ...
  std::string scheme;       // short name of the stored weights and declared activations: "BF16", "W4A16_ASYM", "W8A8", "Q4_K"
  double stored_bits = 0;   // per weight in the file, scales included
  std::string scale_dtype;  // "" for dense
  int64_t group_size = 0;
  std::vector<int32_t> outlier_columns;  // columns of it that are multiplied in bf16 (LLM.int8()), ascending
  std::string activation;                // what the kernel multiplies with: "bf16", "int16 dynamic", "int8 dynamic per token", ...
  std::string accumulator, output, kernel, isa;
  std::string emulated;              // GemmKernelEntry::emulated ("fp8 as bf16"), "" for none
  std::vector<std::string> refused;  // better rows that could not run it, with reasons, and better instruction sets without such a row
  int64_t stored_bytes = 0, resident_bytes = 0;
  std::string tied_to;  // the tensor whose stored bytes it shares ("model.embed_tokens" for a tied head); stored_bytes is 0 then
};

// A weight matrix as the artifact holds it. Exactly one of `dense` and `quantized` is set; both are borrowed.
struct LinearSource {
  std::string name;                   // module: "model.layers.0.self_attn.q_proj"
  const TensorView* dense = nullptr;  // [out, in] F32, F16 or BF16
  const QuantizedTensor* quantized = nullptr;
  std::optional<InputQuantization> input;  // else what the compute context says of weight-only matrices
  std::vector<float> bias;                 // [out], or empty
  int64_t stored_bytes = 0;

  int64_t out() const { return quantized != nullptr ? quantized->out : dense->shape[0]; }
  int64_t in() const { return quantized != nullptr ? quantized->in : dense->shape[1]; }
};

// The part of the row that the stored form decides: name, sizes, packing, scheme, bits, scales.
TensorDataPath DescribeStorage(const LinearSource& source);
// The same part of a complete row.
TensorDataPath StorageOf(const TensorDataPath& path);
// Adds what the kernel decides.
void DescribeKernel(const LinearKernel& chosen, TensorDataPath& path);

}  // namespace pith
