// A hook that sees what flows into the linear layers and the KV cache during Forward: calibration statistics and activation-error reports
// use it.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace pith {

class LayerObserver {
 public:
  virtual ~LayerObserver() = default;
  // The input of one linear module, bf16 bits [num_rows, dim] contiguous. Modules that share an input (q, k and v; gate and up) follow each
  // other with the same pointer. A long batch reaches down_proj in pieces, rows in order. Called on the thread that called Forward,
  // between operators; must not keep the pointer.
  virtual void OnLinearInput(absl::string_view module, const uint16_t* input, int64_t num_rows, int64_t dim) = 0;
  // What a layer puts into the cache: keys after RoPE (less their center, with a cache of 8 bits: key_centers.h) and values,
  // [num_rows, num_kv_heads, head_dim] each, rows `stride` floats apart. Called as OnLinearInput is, between those of q/k/v and of o_proj.
  // The default does nothing.
  virtual void OnKeysValues(const float* /*keys*/, const float* /*values*/, int64_t /*stride*/, int64_t /*num_rows*/) {}
};

}  // namespace pith
