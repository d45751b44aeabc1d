// Names of the weights of a decoder in its artifact. Most architectures differ only in the norms around a layer's two halves.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "artifact/artifact_reader.h"

namespace pith {

// The part that an architecture decides; names are relative to "<prefix>layers.N.".
struct LayerNormNames {
  const char* attention_norm = "input_layernorm";
  const char* post_attention_norm = nullptr;  // norm of the attention's output, before the residual add
  const char* mlp_norm = "post_attention_layernorm";
  const char* post_mlp_norm = nullptr;  // norm of the MLP's output, before the residual add
};

struct WeightMap {
  LayerNormNames norms;
  std::string prefix;  // "model.", "language_model.model." or "model.language_model."
  std::string head;    // "lm_head" or "language_model.lm_head"

  std::string Layer(int64_t layer, absl::string_view module) const;  // "model.layers.3.mlp.gate_proj"
  std::string Embedding() const { return prefix + "embed_tokens"; }
  std::string FinalNorm() const { return prefix + "norm"; }
};

// Finds the prefix by where the embedding lies (text models and the text half of multimodal ones). Errors: kDataLoss when nowhere.
absl::StatusOr<WeightMap> MakeWeightMap(const ArtifactReader& reader, const LayerNormNames& norms);

}  // namespace pith
