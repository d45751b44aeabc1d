// What a decoder-only transformer is, independent of its container: parsed from config.json by one row of architecture_table.cc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/json.h"
#include "kernels/activation.h"
#include "nn/rotary_embedding.h"

namespace pith {

struct DecoderConfig {
  std::string model_type;  // "llama"
  int64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0, num_layers = 0;
  int64_t num_heads = 0, num_kv_heads = 0, head_dim = 0;
  int64_t max_position_embeddings = 0;
  float rms_norm_eps = 1e-6f;
  Activation activation = Activation::kSilu;
  bool tie_word_embeddings = false;
  bool qkv_bias = false, o_bias = false, mlp_bias = false;
  bool qk_norm = false;               // RMSNorm per head on q and k before RoPE
  bool norm_weight_plus_one = false;  // Gemma: multiply by 1 + weight
  bool post_norms = false;            // Gemma: norms after attention and MLP, before the residual add
  float embedding_scale = 1.0f;       // Gemma: sqrt(hidden_size), rounded to bf16
  float attention_scale = 0.0f;       // on q.k
  RopeConfig rope;                    // full-attention layers
  RopeConfig rope_local;              // sliding-window layers
  std::vector<int64_t> layer_window;  // [num_layers] 0: full attention, else sliding window in tokens

  int64_t kv_bytes_per_token_bf16() const { return 2 * num_layers * num_kv_heads * head_dim * 2; }
};

// Parses config.json through the architecture table. Errors: kUnimplemented for an unknown model_type, listing the known ones, or for a
// field value we do not run (named); kDataLoss for missing or absurd values.
absl::StatusOr<DecoderConfig> ParseDecoderConfig(const Json& config);

}  // namespace pith
