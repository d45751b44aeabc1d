// One transformer block: norm, attention, residual add, norm, gated MLP, residual add (Gemma: a norm before each add as well).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/forward_pass.h"
#include "nn/gated_mlp.h"
#include "nn/linear.h"
#include "nn/rms_norm.h"
#include "nn/rotary_embedding.h"

namespace pith {

struct DecoderLayer {
  int64_t index = 0;
  RmsNorm attention_norm, mlp_norm;
  std::optional<RmsNorm> q_norm, k_norm;  // per head, before RoPE
  std::optional<RmsNorm> post_attention_norm, post_mlp_norm;
  Linear qkv, o;
  GatedMlp mlp;
  int64_t window = 0;                       // sliding window in tokens; 0: full attention
  const RotaryEmbedding* rotary = nullptr;  // borrowed from the model

  int64_t resident_bytes() const;
};

// Updates the residual stream (workspace.hidden()) of all rows of the pass, and appends the layer's keys and values to the cache.
void RunDecoderLayer(const DecoderLayer& layer, ForwardPass& pass);

}  // namespace pith
