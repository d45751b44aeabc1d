// Searches for the scale (and minimum) of one group of numbers that are to become small integers, by weighted least squares: candidates of
// the scale around the one that uses the whole range of codes, each with its codes and the best factors for those codes, then refinement.
// Pure and thread-safe. Source of the idea: k-quants of llama.cpp; docs/formats/gguf_blocks.md.
#pragma once

#include <cstdint>

namespace pith {

// Nearest integer, ties to even, of a number below 2^22 in magnitude; becomes vector code without an instruction for it.
inline float RoundSmall(float x) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23
  return (x + kShift) - kShift;
}

// x[i] ~ scale * code[i] - min with codes in [0, max_code] and scale, min >= 0.
struct AffineFit {
  float scale = 0, min = 0;
};

// Minimizes sum of weight[i] * error^2. `count`: 16 or 32. Weights are >= 0.
AffineFit FitAffine(const float* x, const float* weight, int count, int max_code);

// x[i] ~ scale * (code[i] - zero) with codes in [0, 2 * zero); the scale may be negative. 0 for a group of zeros.
float FitSymmetric(const float* x, const float* weight, int count, int zero);

// Codes of the nearest values and their weighted squared error, for factors as they are stored.
float CodeAffine(const float* x, const float* weight, int count, int max_code, AffineFit fit, uint8_t* code);
float CodeSymmetric(const float* x, const float* weight, int count, int zero, float scale, uint8_t* code);

}  // namespace pith
