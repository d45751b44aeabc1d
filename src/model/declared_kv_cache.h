// What an artifact declares of its KV cache: kv_cache_scheme of quantization_config and, with static scales, the tensors beside it.
//
//   <layer>.self_attn.k_scale, .v_scale    BF16, F16 or F32 [1], or one per KV head [num_kv_heads, 1, 1]; keys after RoPE
//   <layer>.self_attn.k_proj.output_scale, .v_proj.output_scale    the same in files of 2024
//
// Source: compressed-tensors and vLLM's loaders; docs/methods/kv_cache.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"
#include "kernels/attention.h"
#include "model/decoder_config.h"
#include "model/weight_map.h"
#include "quantization/quantization_args.h"

namespace pith {

constexpr float kLargestKvScale = 0x1p100f;  // the smallest is kKvSmallest

// Static scales of one layer, in the sense of KvAppendParams.
struct KvScales {
  std::vector<float> key, value;  // [num_kv_heads] each
};

struct DeclaredKvCache {
  KvDtype dtype = KvDtype::kBf16;          // without a scheme bf16
  std::optional<QuantizationArgs> scheme;  // as it stands in the config
  std::vector<KvScales> scales;            // by layer; empty: scales are found at run time
};

// Static scales of integers are left alone: int8 has a scale per token and head, which is at least as exact. So is fp8 whose scheme is
// static but has no scales in the files. Errors: kUnimplemented for a scheme that is not of 8 bits and symmetric; kDataLoss naming the
// tensor for scales that a layer lacks while others have them, of another shape, or outside [2^-100, 2^100].
absl::StatusOr<DeclaredKvCache> ReadDeclaredKvCache(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map);
// The same for an artifact whose architecture its config names. Errors: also those of FindArchitecture and MakeWeightMap.
absl::StatusOr<DeclaredKvCache> ReadDeclaredKvCache(const ArtifactReader& reader, const DecoderConfig& config);

// The name under which scales are written: "model.layers.3.self_attn.k_scale". `part`: "k" or "v".
std::string KvScaleName(const WeightMap& map, int64_t layer, absl::string_view part);

}  // namespace pith
