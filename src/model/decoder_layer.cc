#include "model/decoder_layer.h"

#include <algorithm>

#include "model/cached_attention.h"
#include "model/pass_profile.h"

namespace pith {
namespace {

// Makes `input` ready for `linear`; an observer wants bf16 besides.
void Prepare(const ForwardPass& pass, const Linear& linear, LinearInput& input, int64_t rows) {
  input.Prepare(linear.formats(), rows, linear.in(), pass.observer != nullptr);
}

void Observe(const ForwardPass& pass, const Linear& linear, const LinearInput& input, int64_t rows) {
  if (pass.observer == nullptr) return;
  for (const TensorDataPath& path : linear.data_path()) pass.observer->OnLinearInput(path.name, input.bf16(), rows, linear.in());
}

void ObserveKeys(const ForwardPass& pass, int64_t rows) {
  if (pass.observer == nullptr) return;
  const QkvLayout layout(pass.config);
  const float* keys = pass.workspace.qkv() + layout.queries;
  pass.observer->OnKeysValues(keys, keys + layout.keys, layout.row, rows);
}

// Keys without what they have in common.
void CenterKeys(const ForwardPass& pass, int64_t layer, float* keys, int64_t stride, int64_t rows) {
  if (pass.key_centers == nullptr) return;
  const std::vector<float>& center = (*pass.key_centers)[static_cast<size_t>(layer)];
  for (int64_t r = 0; r < rows; ++r) {
    float* key = keys + r * stride;
    for (size_t i = 0; i < center.size(); ++i) key[i] -= center[i];
  }
}

// Query and key norms, RoPE, and the append to the cache, for rows [begin, end) of the batch.
void PrepareKeys(const DecoderLayer& layer, ForwardPass& pass, int64_t begin, int64_t end) {
  const DecoderConfig& config = pass.config;
  const QkvLayout layout(config);
  float* qkv = pass.workspace.qkv() + begin * layout.row;
  for (int64_t r = 0; layer.q_norm.has_value() && r < end - begin; ++r) {
    layer.q_norm->RunHeads(pass.context, qkv + r * layout.row, config.num_heads);
    layer.k_norm->RunHeads(pass.context, qkv + r * layout.row + layout.queries, config.num_kv_heads);
  }
  layer.rotary->Run(pass.context, qkv, layout.row, end - begin, config.num_heads + config.num_kv_heads, config.head_dim,
                    pass.workspace.positions().data() + begin);
  CenterKeys(pass, layer.index, qkv + layout.queries, layout.row, end - begin);
  AppendKeys(pass, layer.index, begin, end);
}

void RunAttention(const DecoderLayer& layer, ForwardPass& pass) {
  const DecoderConfig& config = pass.config;
  const QkvLayout layout(config);
  Workspace& workspace = pass.workspace;
  const int64_t rows = pass.batch.num_rows();
  Prepare(pass, layer.qkv, workspace.normed(), rows);
  layer.attention_norm.Run(pass.context, workspace.hidden(), config.hidden_size, rows, workspace.normed());
  ProfileNorm(pass, layer.index, rows);
  Observe(pass, layer.qkv, workspace.normed(), rows);
  layer.qkv.Run(pass.context, workspace.normed(), 0, rows, workspace.qkv(), layout.row);
  ProfileLinear(pass, "qkv", layer.index, layer.qkv, rows);
  // A value rotated and stored costs a fraction of one normalized and quantized: few rows are not worth a section of the pool.
  pass.context.ForRows(rows, layout.row / 2, [&](int64_t begin, int64_t end) { PrepareKeys(layer, pass, begin, end); });
  ProfileKeys(pass, layer.index);
  ObserveKeys(pass, rows);
  RunCachedAttention(pass, layer.index, layer.window);
  ProfileAttention(pass, layer.index, layer.window);
  Prepare(pass, layer.o, workspace.attended(), rows);
  pass.context.ForRows(rows, layout.queries, [&](int64_t begin, int64_t end) {
    workspace.attended().StoreBf16(pass.context, begin, end - begin, workspace.attention() + begin * layout.queries, layout.queries);
  });
  Observe(pass, layer.o, workspace.attended(), rows);
  if (layer.post_attention_norm.has_value()) {
    layer.o.Run(pass.context, workspace.attended(), 0, rows, workspace.branch(), config.hidden_size);
    ProfileLinear(pass, "o", layer.index, layer.o, rows);
    layer.post_attention_norm->RunAccumulate(pass.context, workspace.branch(), rows, config.hidden_size, workspace.hidden());
    ProfileNorm(pass, layer.index, rows);
  } else {
    layer.o.Run(pass.context, workspace.attended(), 0, rows, workspace.hidden(), config.hidden_size, /*accumulate=*/true);
    ProfileLinear(pass, "o", layer.index, layer.o, rows);
  }
}

void RunMlp(const DecoderLayer& layer, ForwardPass& pass) {
  const int64_t hidden_size = pass.config.hidden_size;
  Workspace& workspace = pass.workspace;
  const int64_t rows = pass.batch.num_rows();
  const bool post_norm = layer.post_mlp_norm.has_value();
  Prepare(pass, layer.mlp.gate_up(), workspace.normed(), rows);
  layer.mlp_norm.Run(pass.context, workspace.hidden(), hidden_size, rows, workspace.normed());
  ProfileNorm(pass, layer.index, rows);
  Observe(pass, layer.mlp.gate_up(), workspace.normed(), rows);
  float* out = post_norm ? workspace.branch() : workspace.hidden();
  for (int64_t begin = 0; begin < rows; begin += kMaxMlpRows) {
    const int64_t count = std::min(rows - begin, kMaxMlpRows);
    Prepare(pass, layer.mlp.down(), workspace.mlp_activation(), count);
    layer.mlp.RunGateUp(pass.context, workspace.normed(), begin, count, workspace.gate_up(), workspace.mlp_activation());
    ProfileLinear(pass, "gate_up", layer.index, layer.mlp.gate_up(), count);
    Observe(pass, layer.mlp.down(), workspace.mlp_activation(), count);
    layer.mlp.RunDown(pass.context, workspace.mlp_activation(), count, out + begin * hidden_size, /*accumulate=*/!post_norm);
    ProfileLinear(pass, "down", layer.index, layer.mlp.down(), count);
  }
  if (!post_norm) return;
  layer.post_mlp_norm->RunAccumulate(pass.context, workspace.branch(), rows, hidden_size, workspace.hidden());
  ProfileNorm(pass, layer.index, rows);
}

}  // namespace

int64_t DecoderLayer::resident_bytes() const {
  int64_t bytes = attention_norm.resident_bytes() + mlp_norm.resident_bytes() + qkv.resident_bytes() + o.resident_bytes() +
                  mlp.resident_bytes();
  for (const std::optional<RmsNorm>* norm : {&q_norm, &k_norm, &post_attention_norm, &post_mlp_norm}) {
    if (norm->has_value()) bytes += (*norm)->resident_bytes();
  }
  return bytes;
}

void RunDecoderLayer(const DecoderLayer& layer, ForwardPass& pass) {
  RunAttention(layer, pass);
  RunMlp(layer, pass);
}

}  // namespace pith
