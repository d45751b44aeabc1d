// GEMM with prepacked weights: out[m][n] = sum_k activation[m][k] * weight[n][k] (+ bias[n]), f32 out.
// POD only: ISA folders include this header.
//
// Activations are bf16, or integers with a scale per row and group of k (quantize_activation.h): one int8 plane, or two planes that make a
// 16-bit fixed point number. Integer rows sum the products of a step exactly in int32, where a step is the smaller of the weights' and
// the activations' group; across steps they sum in f32, ascending:
//   total = fma(float(sum_step) * activation_scale, weight_scale, total)       (cpu/gemm_integer_driver.h has it in full)
// so every integer row of every instruction set gives the same bits.
//
// fp8 is e4m3fn. Weights are codes with a scale per group and without offsets; none is NaN (0x7F, 0xFF), which loaders refuse. Activations
// are rounded to e4m3 and held in bf16, which holds every value exactly (quantize_activation.h), with a scale per row.
//
// Row invariance: an output is the same bits whatever m, whatever range of columns a call computes, and whoever computes the others. Every
// lane accumulates its own output column over k in one fixed order (docs/architecture.md); int32 sums inside a group are exact.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pith {

constexpr int64_t kGemmPanel = 16;  // output columns interleaved in one prepacked panel

// How prepacked scales and mins are stored: in the narrowest type that holds every one of them exactly (gemm_problem.h chooses it),
// so that the choice saves bytes and never changes a result. kI8: integers in [-128, 127] times an f16 unit that unit_size k share; the
// product is exact in f32.
enum class GemmScale : int32_t { kF32 = 0, kF16 = 1, kBf16 = 2, kI8 = 3 };

// What a GEMM row multiplies weights with.
enum class GemmActivation : int32_t {
  kBf16 = 0,
  kInt16 = 1,  // two int8 planes: scale * (256 high + low)
  kInt8 = 2,   // one int8 plane: scale * high
  kFp8 = 3,    // e4m3 values, held in bf16 (exact), with a scale per row
};

// What a weight matrix is, before any kernel is chosen, and what it will be multiplied with. k = in, n = out.
struct GemmProblem {
  int64_t n = 0, k = 0;
  int64_t group_size = 0;       // quantized weights: divides k; dense: 0
  int bits = 16;                // 16 dense bf16; 2..4 for w4 kernels, 5..8 for w8 kernels, 8 for f8 kernels
  bool has_zero_point = false;  // per group integer zero points instead of 2^(bits-1)
  bool has_min = false;         // weight = scale * code - min; never together with zero points
  GemmScale scale = GemmScale::kF32;
  int64_t unit_size = 0;  // kI8: divides k, group_size times a power of two; else 0
  GemmActivation activation = GemmActivation::kBf16;
  int64_t activation_group = 0;  // integer activations: k that share a scale; divides k, and is a multiple or a divisor of group_size

  // Integer activations: how many k are summed in int32 before scales are applied.
  constexpr int64_t step() const { return group_size < activation_group ? group_size : activation_group; }
};

// Prepacks the panels [panel_begin, panel_end) so that threads can share the work. Exactly one of `dense` and `code` is set.
struct GemmPrepackParams {
  GemmProblem problem;
  const uint16_t* dense = nullptr;         // bf16 bits [n, k]
  const uint8_t* code = nullptr;           // [n, k], in [0, 2^bits), or e4m3 bits
  const float* scale = nullptr;            // [n, k / group_size]
  const uint8_t* zero_point = nullptr;     // [n, k / group_size] or null
  const float* min = nullptr;              // [n, k / group_size] or null
  const float* scale_unit = nullptr;       // kI8: [n, k / unit_size]
  const float* min_unit = nullptr;         // kI8 with mins: the same
  uint8_t* out = nullptr;                  // prepack_bytes(problem) bytes, 64-byte aligned, zeroed
  int64_t panel_begin = 0, panel_end = 0;  // of ceil(n / kGemmPanel)
};

// Integer activations of m rows, as quantize_activation.h makes them.
struct IntegerActivation {
  const int8_t* high = nullptr;  // [m, k], rows `stride` bytes apart: the only plane of kInt8, the upper one of kInt16
  const int8_t* low = nullptr;   // [m, k], kInt16 only
  int64_t stride = 0;
  const float* scale = nullptr;  // [m, k / activation_group], dense
  const int32_t* sum = nullptr;  // [m, k / step()], dense: sums of the integers of each step
};

// Activations that were left out of the integers (LLM.int8(), Dettmers et al. 2022: doi.org/10.48550/arXiv.2208.07339). Their integers are
// zero; their products with the weights are added in f32 by GemmKernelEntry::add_outliers.
struct OutlierActivation {
  const int32_t* count = nullptr;  // [m], outliers of each row; null: no row has any
  const int32_t* index = nullptr;  // [m, up to k], rows `stride` elements apart: their k, ascending
  const float* value = nullptr;    // the same shape
  int64_t stride = 0;
};

struct GemmParams {
  GemmProblem problem;
  const uint8_t* weight = nullptr;       // prepacked by the same kernel row, 64-byte aligned
  const uint16_t* activation = nullptr;  // kBf16, kFp8: bits [m, k], rows `activation_stride` elements apart
  int64_t activation_stride = 0;
  const float* activation_scale = nullptr;  // kFp8: [m]; multiplies the sum over k, before the bias
  IntegerActivation integer;                // kInt16, kInt8
  OutlierActivation outlier;                // kInt8, and read by add_outliers only
  int64_t m = 0;                            // >= 1
  const float* bias = nullptr;              // [n] or null
  float* out = nullptr;                     // [m, n - 16 * out_panel], rows `out_stride` floats apart
  int64_t out_stride = 0;
  int64_t out_panel = 0;                   // the panel whose columns `out` begins with: 0, or at most panel_begin
  bool accumulate = false;                 // out += result (residual add): one f32 addition after the sum over k and the bias
  int64_t panel_begin = 0, panel_end = 0;  // output panels this call computes, of ceil(n / kGemmPanel)
};

}  // namespace pith
