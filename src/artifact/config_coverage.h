// Whether quantization_config explains every tensor of an artifact exactly once: a quantized weight by one group, any other by an ignore
// entry or, where no target means its class (norms, embeddings), by none. Opening an artifact refuses one that is not so; this says by what
// each tensor is explained.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"

namespace pith {

struct ConfigCoverage {
  std::map<std::string, int64_t> by_group;   // tensors of modules that a group targets, by the group's name
  std::map<std::string, int64_t> by_ignore;  // of modules that an ignore entry leaves alone, by the entry (the first that matches)
  int64_t by_kv_cache_scheme = 0;            // scales of the KV cache
  int64_t untargeted = 0;                    // of modules that no target means
  std::vector<std::string> problems;         // "model.layers.0.mlp.up_proj: targeted by group_0 and group_1", ...: empty when all is well

  // "all 273 tensors explained once: 210 by group_0, 1 by ignore \"lm_head\", 62 not targeted"
  std::string Describe() const;
};

// nullopt for an artifact without a quantization_config. Reads no weights.
// Errors: those of ParseQuantizationConfig and ArtifactReader::DescribeWeight.
absl::StatusOr<std::optional<ConfigCoverage>> ReadConfigCoverage(const ArtifactReader& reader);

}  // namespace pith
