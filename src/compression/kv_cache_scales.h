// Static scales of a KV cache, from the keys (after RoPE) and values that calibration data give in the quantized model.
//
// scale = max|x| / 448 over all tokens, per KV head or of all heads together, rounded to the dtype it is stored in: the minmax observer of
// compressed-tensors. docs/methods/kv_cache.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "artifact/artifact_writer.h"
#include "compression/compression_report.h"
#include "compression/stage.h"
#include "model/decoder_config.h"
#include "model/layer_observer.h"
#include "model/weight_map.h"
#include "quantization/quantization_args.h"

namespace pith {

// The largest magnitudes of one layer's keys and values. Not thread-safe.
class KvRange : public LayerObserver {
 public:
  explicit KvRange(const DecoderConfig& config) : head_dim_(config.head_dim), key_(config.num_kv_heads), value_(config.num_kv_heads) {}

  void OnLinearInput(absl::string_view, const uint16_t*, int64_t, int64_t) override {}
  void OnKeysValues(const float* keys, const float* values, int64_t stride, int64_t num_rows) override;

  // [num_kv_heads]; not finite once an element was not.
  const std::vector<float>& key_max_abs() const { return key_; }
  const std::vector<float>& value_max_abs() const { return value_; }

 private:
  int64_t head_dim_;
  std::vector<float> key_, value_;
};

// The scales of what `range` saw, for static `args` (KvCacheScheme), stored in `dtype`. A head whose keys or values were always 0 gets
// scale 1; that, and a scale that `dtype` cannot hold closely, is a note. `attention`: "model.layers.3.self_attn".
// Errors: kDataLoss for magnitudes that are not finite.
absl::StatusOr<KvScaleReport> MakeKvScales(const std::string& attention, const QuantizationArgs& args, const KvRange& range, DType dtype);

// The tensors of the scales, and what they will be for all layers.
std::vector<NamedTensor> EncodeKvScales(const KvScaleReport& scales, const QuantizationArgs& args, DType dtype);
std::vector<TensorSpec> PlanKvScales(const WeightMap& map, const DecoderConfig& config, const QuantizationArgs& args, DType dtype);

}  // namespace pith
