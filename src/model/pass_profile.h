// Ends an operator of a forward pass in its profiler, with the bytes and operations it stands for. Without a profiler each call is one
// comparison. One call directly after each operator; see nn/profiler.h.
#pragma once

#include <cstdint>

#include "model/forward_pass.h"
#include "nn/embedding.h"
#include "nn/linear.h"

namespace pith {

constexpr int64_t kNoLayer = -1;

// Out of line: what the functions below do with a profiler.
void RecordLinear(const ForwardPass& pass, const char* name, int64_t layer, const Linear& linear, int64_t rows);
void RecordEmbedding(const ForwardPass& pass, const Embedding& embedding);
void RecordNorm(const ForwardPass& pass, int64_t layer, int64_t rows);
void RecordKeys(const ForwardPass& pass, int64_t layer);
void RecordAttention(const ForwardPass& pass, int64_t layer, int64_t window);

// A matrix product of `rows` rows, with what is fused to it (SiLU, residual add).
inline void ProfileLinear(const ForwardPass& pass, const char* name, int64_t layer, const Linear& linear, int64_t rows) {
  if (pass.profiler != nullptr) RecordLinear(pass, name, layer, linear, rows);
}
inline void ProfileEmbedding(const ForwardPass& pass, const Embedding& embedding) {
  if (pass.profiler != nullptr) RecordEmbedding(pass, embedding);
}
// "norm": rows of hidden_size f32 to the input of a linear layer, or added to the residual stream.
inline void ProfileNorm(const ForwardPass& pass, int64_t layer, int64_t rows) {
  if (pass.profiler != nullptr) RecordNorm(pass, layer, rows);
}
// "rope_kv": query and key norms, RoPE, and the append to the cache.
inline void ProfileKeys(const ForwardPass& pass, int64_t layer) {
  if (pass.profiler != nullptr) RecordKeys(pass, layer);
}
// "attention": every distinct key and value once, however often tiles of rows read them.
inline void ProfileAttention(const ForwardPass& pass, int64_t layer, int64_t window) {
  if (pass.profiler != nullptr) RecordAttention(pass, layer, window);
}

}  // namespace pith
