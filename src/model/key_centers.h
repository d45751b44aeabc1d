// What the keys of a head have in common, taken away before a cache of 8 bits rounds them.
//
// Softmax does not see what all its scores have in common: q . (k_t - c) is q . k_t less q . c, which is the same for every token t. So
// keys can be stored less any constant c, and attention stays what it was, with nothing to put back. A bias of k_proj is such a constant in
// the channels that RoPE turns slowly, and there it can be a hundred times what the token itself says (qwen2): an int8 step as large as the
// signal, or an e4m3 step of a sixteenth of the bias.
//
//   c = mean of RoPE(bias, p) over positions p in [0, kCenteredPositions)
//
// Channels that turn fast average out to nothing. docs/methods/kv_cache.md has what it is worth.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"
#include "model/decoder_config.h"
#include "model/weight_map.h"

namespace pith {

constexpr int64_t kCenteredPositions = 4096;

// c of one layer from the bias of its k_proj, both [num_kv_heads * head_dim]; `rope`: of the layer.
std::vector<float> KeyCenter(const std::vector<float>& bias, const RopeConfig& rope, int64_t head_dim, int64_t num_positions);

// By layer; empty for models without a bias, and for those that normalize keys behind it. Errors: those of ReadTensor.
absl::StatusOr<std::vector<std::vector<float>>> ReadKeyCenters(const ArtifactReader& reader, const DecoderConfig& config,
                                                               const WeightMap& map);

}  // namespace pith
