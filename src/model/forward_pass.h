// One forward pass: the checked batch, the buffers it works in, and what its layers share.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/selection.h"
#include "kv_cache/kv_storage.h"
#include "model/attention_plan.h"
#include "model/declared_kv_cache.h"
#include "model/decoder_config.h"
#include "model/forward_batch.h"
#include "model/layer_observer.h"
#include "nn/compute_context.h"
#include "nn/linear_input.h"
#include "nn/profiler.h"
#include "tensor/tensor.h"

namespace pith {

// Rows of an MLP computed together; bounds the largest buffer ([rows, 2 * intermediate_size] floats).
constexpr int64_t kMaxMlpRows = 128;

// Buffers of a forward pass. Grow to the largest batch seen and stay.
class Workspace {
 public:
  Workspace(const DecoderConfig& config, int num_threads);
  // Makes room for `rows` rows. May throw std::bad_alloc.
  void Reserve(int64_t rows);
  void ReserveAttentionStates(int64_t floats);

  float* hidden() { return Floats(hidden_); }                // [rows, hidden_size] the residual stream
  LinearInput& normed() { return normed_; }                  // [rows, hidden_size] input of a linear layer
  float* qkv() { return Floats(qkv_); }                      // [rows, qkv_size]: queries, keys, values of a row one after the other
  uint16_t* attention() { return Bf16(attention_); }         // [rows, num_heads * head_dim] output of attention
  LinearInput& attended() { return attended_; }              // the same as input of o_proj
  float* gate_up() { return Floats(gate_up_); }              // [min(rows, kMaxMlpRows), 2 * intermediate_size]
  LinearInput& mlp_activation() { return mlp_activation_; }  // [min(rows, kMaxMlpRows), intermediate_size] input of down_proj
  float* branch() { return Floats(branch_); }                // [rows, hidden_size] output of a half layer before its post-norm
  float* attention_scratch(int thread);
  float* attention_states() { return Floats(attention_states_); }  // of split tiles; see AttentionPlan
  std::vector<int32_t>& positions() { return positions_; }         // [rows]

  int64_t bytes() const;  // of all buffers

 private:
  static float* Floats(AlignedBuffer& buffer) { return reinterpret_cast<float*>(buffer.data()); }
  static uint16_t* Bf16(AlignedBuffer& buffer) { return reinterpret_cast<uint16_t*>(buffer.data()); }

  const DecoderConfig& config_;
  int64_t rows_ = 0, scratch_floats_;
  AlignedBuffer hidden_, qkv_, attention_, gate_up_, branch_, attention_scratch_, attention_states_;
  LinearInput normed_, attended_, mlp_activation_;  // prepared by those who fill them
  std::vector<int32_t> positions_;
};

// Errors: kInvalidArgument naming row, sequence or field for anything out of range, unordered or too small.
absl::Status ValidateBatch(const ForwardBatch& batch, const DecoderConfig& config, const KvCacheSpec& kv, int64_t logits_size);

struct ForwardPass {
  const ComputeContext& context;
  const DecoderConfig& config;
  const ForwardBatch& batch;
  KvStorage& kv;
  Workspace& workspace;
  const AttentionSelection& attention;  // the kernels of the cache's format
  std::vector<AttentionPlan>& attention_plans;
  LayerObserver* observer = nullptr;
  Profiler* profiler = nullptr;
  const std::vector<KvScales>* kv_scales = nullptr;  // by layer; null: scales of the cache, if it has any, are found at run time
  const std::vector<std::vector<float>>* key_centers = nullptr;  // by layer (key_centers.h); null: keys are stored as they are
};

}  // namespace pith
