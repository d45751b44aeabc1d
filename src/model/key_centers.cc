#include "model/key_centers.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "nn/rotary_embedding.h"
#include "tensor/tensor.h"

namespace pith {

std::vector<float> KeyCenter(const std::vector<float>& bias, const RopeConfig& rope, int64_t head_dim, int64_t num_positions) {
  std::vector<float> center(bias.size());
  const int64_t half = head_dim / 2;
  const std::vector<float> frequencies = RopeInverseFrequencies(rope, head_dim);
  for (int64_t i = 0; i < half; ++i) {
    // The mean of e^(i f p) over n positions: sin(n f / 2) / (n sin(f / 2)) e^(i f (n - 1) / 2).
    const double f = frequencies[static_cast<size_t>(i)], n = static_cast<double>(num_positions);
    const double length = std::sin(f / 2) == 0 ? 1.0 : std::sin(n * f / 2) / (n * std::sin(f / 2));
    const double cos = rope.attention_factor * length * std::cos(f * (n - 1) / 2);
    const double sin = rope.attention_factor * length * std::sin(f * (n - 1) / 2);
    for (size_t at = static_cast<size_t>(i); at < bias.size(); at += static_cast<size_t>(head_dim)) {
      const double first = bias[at], second = bias[at + static_cast<size_t>(half)];
      center[at] = static_cast<float>(first * cos - second * sin);
      center[at + static_cast<size_t>(half)] = static_cast<float>(second * cos + first * sin);
    }
  }
  return center;
}

absl::StatusOr<std::vector<std::vector<float>>> ReadKeyCenters(const ArtifactReader& reader, const DecoderConfig& config,
                                                               const WeightMap& map) {
  std::vector<std::vector<float>> centers;
  if (!config.qkv_bias || config.qk_norm) return centers;
  const int64_t num_positions = std::min(config.max_position_embeddings, kCenteredPositions);
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const std::string name = map.Layer(i, "self_attn.k_proj.bias");
    ASSIGN_OR_RETURN(const std::optional<Weight> stored, reader.ReadTensor(name));
    std::vector<float> bias(static_cast<size_t>(config.num_kv_heads * config.head_dim));
    if (!stored.has_value() || stored->dense->num_elements() != static_cast<int64_t>(bias.size())) {
      return BadFileError(name, ": expected a bias of ", bias.size(), " values, found ",
                          stored.has_value() ? ShapeName(stored->dense->shape) : "no such tensor");
    }
    RETURN_IF_ERROR(Annotate(ConvertToFloat(*stored->dense, absl::MakeSpan(bias)), name));
    centers.push_back(
        KeyCenter(bias, config.layer_window[static_cast<size_t>(i)] > 0 ? config.rope_local : config.rope, config.head_dim, num_positions));
  }
  return centers;
}

}  // namespace pith
