// The oracle of the quantized GEMM rows, templated on how codes are stored. Plain f32 in ascending k, nothing reassociated:
//
//   w   = scale * (code - zero_point)   or   scale * code - min          (f32: the formula of quantization/quantized_tensor.h)
//   sum = sum + a * w                   for k = 0, 1, ...                (a product rounded to f32, then an addition rounded to f32)
//   r   = sum (* activation scale) (+ bias);   out = r   or   out + r
//
// Layout of a panel of 16 columns, each array with the column fastest: scale f32 [groups][16], zero point or min f32 [groups][16],
// codes [ceil(k / codes per byte)][16]. The zero point is stored as f32 even when it is the same everywhere: 2^(bits-1), of e4m3 codes 0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/scalar/fp8.h"
#include "kernels/gemm.h"

namespace pith {
namespace {

// How codes are stored, what they stand for, and the zero point of a matrix without zero points.
// One code per byte.
struct ByteCodes {
  static float Center(const GemmProblem& problem) { return static_cast<float>(1 << (problem.bits - 1)); }
  static int64_t Bytes(int64_t k) { return k * kGemmPanel; }
  static void Put(uint8_t* codes, int64_t k, int64_t column, uint8_t code) { codes[k * kGemmPanel + column] = code; }
  static float Get(const uint8_t* codes, int64_t k, int64_t column) { return codes[k * kGemmPanel + column]; }
};

// e4m3, one per byte.
struct Fp8Codes : ByteCodes {
  static float Center(const GemmProblem& /*problem*/) { return 0.0f; }
  static float Get(const uint8_t* codes, int64_t k, int64_t column) { return F32FromFp8(codes[k * kGemmPanel + column]); }
};

// Two codes per byte: even k in the low nibble.
struct NibbleCodes {
  static float Center(const GemmProblem& problem) { return ByteCodes::Center(problem); }
  static int64_t Bytes(int64_t k) { return (k + 1) / 2 * kGemmPanel; }
  static void Put(uint8_t* codes, int64_t k, int64_t column, uint8_t code) {
    codes[k / 2 * kGemmPanel + column] |= static_cast<uint8_t>(code << (k % 2 * 4));
  }
  static float Get(const uint8_t* codes, int64_t k, int64_t column) {
    return static_cast<float>((codes[k / 2 * kGemmPanel + column] >> (k % 2 * 4)) & 15);
  }
};

inline float BitsToFloat(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}

inline const char* CanImplementReference(const GemmProblem& problem, int min_bits, int max_bits) {
  if (problem.n < 1 || problem.k < 1) return "empty matrix";
  if (problem.bits < min_bits || problem.bits > max_bits) return "bits outside the family's range";
  if (problem.group_size < 1 || problem.k % problem.group_size != 0) return "group_size does not divide k";
  if (problem.has_min && problem.has_zero_point) return "zero points and mins together";
  return nullptr;
}

template <typename Codes> int64_t ReferencePanelBytes(const GemmProblem& problem) {
  const int64_t bytes = 2 * problem.k / problem.group_size * kGemmPanel * 4 + Codes::Bytes(problem.k);
  return (bytes + 63) / 64 * 64;
}

template <typename Codes> size_t ReferencePrepackBytes(const GemmProblem& problem) {
  return (problem.n + kGemmPanel - 1) / kGemmPanel * ReferencePanelBytes<Codes>(problem);
}

template <typename Codes> void PrepackReference(const GemmPrepackParams& params) {
  const GemmProblem& problem = params.problem;
  const int64_t groups = problem.k / problem.group_size;
  for (int64_t n = params.panel_begin * kGemmPanel; n < params.panel_end * kGemmPanel && n < problem.n; ++n) {
    uint8_t* panel = params.out + n / kGemmPanel * ReferencePanelBytes<Codes>(problem);
    float* scale = reinterpret_cast<float*>(panel);
    float* offset = scale + groups * kGemmPanel;
    uint8_t* codes = panel + 2 * groups * kGemmPanel * 4;
    const int64_t column = n % kGemmPanel;
    for (int64_t g = 0; g < groups; ++g) {
      scale[g * kGemmPanel + column] = params.scale[n * groups + g];
      offset[g * kGemmPanel + column] = problem.has_min          ? params.min[n * groups + g]
                                        : problem.has_zero_point ? static_cast<float>(params.zero_point[n * groups + g])
                                                                 : Codes::Center(problem);
    }
    for (int64_t k = 0; k < problem.k; ++k) Codes::Put(codes, k, column, params.code[n * problem.k + k]);
  }
}

// Adds one panel's product with one activation row to sum[16].
template <typename Codes>
void AccumulateReference(const GemmProblem& problem, const uint8_t* panel, const uint16_t* activation, float* sum) {
  const int64_t groups = problem.k / problem.group_size;
  const float* scale = reinterpret_cast<const float*>(panel);
  const float* offset = scale + groups * kGemmPanel;
  const uint8_t* codes = panel + 2 * groups * kGemmPanel * 4;
  for (int64_t k = 0; k < problem.k; ++k) {
    const float a = BitsToFloat(static_cast<uint32_t>(activation[k]) << 16);
    const float* s = scale + k / problem.group_size * kGemmPanel;
    const float* o = offset + k / problem.group_size * kGemmPanel;
    if (problem.has_min) {
      for (int64_t j = 0; j < kGemmPanel; ++j) sum[j] += a * (s[j] * Codes::Get(codes, k, j) - o[j]);
    } else {
      for (int64_t j = 0; j < kGemmPanel; ++j) sum[j] += a * (s[j] * (Codes::Get(codes, k, j) - o[j]));
    }
  }
}

// Writes the columns of one panel of one output row: the activations' scale, the bias, then the residual.
inline void StoreReference(const GemmParams& params, int64_t row, int64_t panel, const float* sum) {
  for (int64_t n = panel * kGemmPanel; n < (panel + 1) * kGemmPanel && n < params.problem.n; ++n) {
    float result = sum[n % kGemmPanel];
    if (params.activation_scale != nullptr) result *= params.activation_scale[row];
    if (params.bias != nullptr) result += params.bias[n];
    float* out = params.out + row * params.out_stride + n - params.out_panel * kGemmPanel;
    *out = params.accumulate ? *out + result : result;
  }
}

template <typename Codes> void ReadReferenceRow(const GemmProblem& problem, const uint8_t* weight, int64_t n, float* out) {
  const int64_t groups = problem.k / problem.group_size;
  const uint8_t* panel = weight + n / kGemmPanel * ReferencePanelBytes<Codes>(problem);
  const float* scale = reinterpret_cast<const float*>(panel) + n % kGemmPanel;
  const float* offset = scale + groups * kGemmPanel;
  const uint8_t* codes = panel + 2 * groups * kGemmPanel * 4;
  for (int64_t k = 0; k < problem.k; ++k) {
    const int64_t g = k / problem.group_size * kGemmPanel;
    const float code = Codes::Get(codes, k, n % kGemmPanel);
    out[k] = problem.has_min ? scale[g] * code - offset[g] : scale[g] * (code - offset[g]);
  }
}

template <typename Codes> void RunReference(const GemmParams& params) {
  const int64_t panel_bytes = ReferencePanelBytes<Codes>(params.problem);
  for (int64_t panel = params.panel_begin; panel < params.panel_end; ++panel) {
    for (int64_t row = 0; row < params.m; ++row) {
      float sum[kGemmPanel] = {};
      AccumulateReference<Codes>(params.problem, params.weight + panel * panel_bytes, params.activation + row * params.activation_stride,
                                 sum);
      StoreReference(params, row, panel, sum);
    }
  }
}

}  // namespace
}  // namespace pith
