// Rows of the kernel tables. A GEMM row says what it consumes and how; operator rows say which instruction set they use.
// Tables are constant arrays in each ISA folder (cpu/tables.h); registry.h lists them. POD only: ISA folders include this header.
//
// Name grammar: <op>_<act>_<weight>_<out>__<isa>, e.g. gemm_bf16_w4g_f32__avx512_vnni, attention_f32_bf16_bf16__avx2.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/embedding.h"
#include "kernels/gemm.h"
#include "kernels/multiply.h"
#include "kernels/normalization.h"
#include "kernels/quantize_activation.h"
#include "kernels/rotary.h"

namespace pith {

// The order of base/cpu_features.h Isa, which says what includes what.
enum class KernelIsa : int32_t { kScalar = 0, kAvx2 = 1, kAvx2Vnni = 2, kAvx512 = 3, kAvx512Vnni = 4, kAmx = 5 };

// Weight families a GEMM row can consume.
enum class GemmWeight : int32_t {
  kBf16 = 0,       // dense
  kW8Grouped = 1,  // 5..8 bit codes in one byte each
  kW4Grouped = 2,  // 2..4 bit codes, two per byte
  kF8Grouped = 3,  // e4m3 codes in one byte each
};

struct GemmKernelEntry {
  const char* name;
  GemmWeight weight;
  GemmActivation activation;
  const char* accumulator;  // "f32", "int32 per group, f32 across"
  KernelMultiply multiply;
  KernelIsa isa;
  // nullptr, or why the row cannot run the problem (static text: "group_size % 8 != 0").
  const char* (*can_implement)(const GemmProblem&);
  size_t (*prepack_bytes)(const GemmProblem&);
  void (*prepack)(const GemmPrepackParams&);
  void (*run)(const GemmParams&);
  // Row `n` of the prepacked weights as k floats, exactly what they stand for: a tied embedding is looked up in the matrix of the head.
  void (*read_row)(const GemmProblem&, const uint8_t* weight, int64_t n, float* out);
  // nullptr, or which type stands in for one that the row's instruction set cannot multiply (static text: "fp8 as bf16", "bf16 as f32").
  // Integer codes that become bf16 to meet bf16 activations are no stand-in: that is what the data path says.
  const char* emulated = nullptr;
  // int8 rows of one-byte codes, else null. After `run`, for the same panels: out[r][n] += the sum over the outliers of row r, ascending,
  // of value * weight[n][index]; nothing where a row has none. Every product, sum and dequantized weight is rounded to f32.
  void (*add_outliers)(const GemmParams&) = nullptr;
};

// One row per operator; which pointer is set says which operator it is (exactly one, but attention comes with its combine).
struct OperatorEntry {
  const char* name;
  KernelIsa isa;
  KvDtype kv_dtype = KvDtype::kBf16;  // of attention and kv_append rows: the cache format they read or write
  int32_t head_dim_multiple = 1;      // of attention rows: what head_dim must be a multiple of
  KernelMultiply multiply;            // of attention rows: queries x keys and weights x values, alike in every row
  const char* emulated = nullptr;     // of attention rows: as above, for keys and values ("int8 as f32")
  void (*attention)(const AttentionParams&) = nullptr;
  void (*attention_combine)(const AttentionParams&) = nullptr;
  void (*kv_append)(const KvAppendParams&) = nullptr;
  void (*rms_norm)(const RmsNormParams&) = nullptr;
  void (*rotary)(const RotaryParams&) = nullptr;
  void (*gated_activation)(const GatedActivationParams&) = nullptr;
  void (*embedding)(const EmbeddingParams&) = nullptr;
  void (*convert)(const ConvertParams&) = nullptr;
  void (*quantize_activation)(const QuantizeActivationParams&) = nullptr;
  void (*quantize_activation_fp8)(const QuantizeActivationFp8Params&) = nullptr;
};

}  // namespace pith
