// Rotary position embedding: cosine and sine tables for one set of RoPE parameters, and the operator that applies them.
// Sources: Su et al. 2021 (RoPE); position interpolation (Chen et al. 2023) for "linear"; the Llama 3.1 model card for "llama3";
// Peng et al. 2023 (arXiv 2309.00071) for "yarn". The order of roundings is that of the transformers library: frequencies and
// angles in f32, one rounding per operation, so that long positions get the angles the models were trained with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nn/compute_context.h"

namespace pith {

struct RopeConfig {
  double theta = 10000.0;
  std::string scaling = "none";  // none, linear, llama3, yarn
  double factor = 1.0;
  double low_freq_factor = 1.0, high_freq_factor = 4.0;  // llama3
  int64_t original_max_position = 0;                     // llama3, yarn
  double beta_fast = 32.0, beta_slow = 1.0;              // yarn
  bool truncate = true;                                  // yarn: ramp bounds rounded outwards to whole dimensions
  double attention_factor = 1.0;                         // yarn: multiplies cos and sin
  bool operator==(const RopeConfig&) const = default;
};

// [rotary_dim / 2] angular frequencies per position, scaled.
std::vector<float> RopeInverseFrequencies(const RopeConfig& config, int64_t rotary_dim);

class RotaryEmbedding {
 public:
  // rotary_dim is even. Tables grow on demand, never past max_positions.
  RotaryEmbedding(const RopeConfig& config, int64_t rotary_dim, int64_t max_positions);

  // Makes the tables hold positions [0, num_positions); num_positions <= max_positions. Not thread-safe.
  void Reserve(int64_t num_positions);
  int64_t reserved() const { return reserved_; }

  // Rotates x [rows, num_heads, head_dim] in place, rows x_stride floats apart; positions [rows] lie below reserved().
  // On the calling thread.
  void Run(const ComputeContext& context, float* x, int64_t x_stride, int64_t rows, int64_t num_heads, int64_t head_dim,
           const int32_t* positions) const;

  const std::vector<float>& cos() const { return cos_; }  // [reserved, rotary_dim / 2]
  const std::vector<float>& sin() const { return sin_; }

 private:
  std::vector<float> inverse_frequency_;
  float attention_factor_;
  int64_t rotary_dim_, max_positions_, reserved_ = 0;
  std::vector<float> cos_, sin_;
};

}  // namespace pith
