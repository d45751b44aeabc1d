// The model architectures GGUF files come in: how their tensors are called in Hugging Face checkpoints, which shapes they have, and what
// the conversion to GGUF changed. A new architecture is one row of the table in gguf_architecture.cc and, where its config has fields of
// its own, one function there.
// Source: ggml docs/gguf.md; llama.cpp's converters; docs/formats/gguf.md.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "artifact/gguf.h"
#include "base/json.h"

namespace pith {

// Sizes from the metadata, each within the range a decoder can have.
struct GgufSizes {
  int64_t num_layers = 0, hidden_size = 0, intermediate_size = 0;
  int64_t num_heads = 0, num_kv_heads = 0, head_dim = 0;
  int64_t vocab_size = 0;  // rows of token_embd
};

// A side of a tensor.
enum class GgufSide { kNone, kHidden, kIntermediate, kQueries, kKeys, kHeadDim };

enum class GgufBias { kNever, kOptional, kRequired };

// One module of a layer.
struct GgufModule {
  absl::string_view gguf;         // "attn_q"
  absl::string_view huggingface;  // "self_attn.q_proj"
  GgufSide out = GgufSide::kHidden;
  GgufSide in = GgufSide::kNone;  // kNone: a vector
  GgufBias bias = GgufBias::kNever;
  bool interleaved_heads = false;  // rows of a head stored as pairs (0, d/2, 1, d/2+1, ...) instead of halves
};

struct GgufArchitecture {
  absl::string_view name;        // general.architecture
  absl::string_view model_type;  // config.json
  absl::string_view class_name;  // config.json: architectures
  absl::Span<const GgufModule> layer;
  bool norm_plus_one = false;  // norm weights stored as Hugging Face's plus one
  // Fields beside the common ones.
  absl::Status (*add_config)(const GgufMetadata& metadata, const GgufSizes& sizes, Json* config);
};

// THE TABLE. Errors: kUnimplemented with the known names.
absl::StatusOr<const GgufArchitecture*> FindGgufArchitecture(absl::string_view name);

// The row that mentions a config.json's model_type. Errors: kUnimplemented with the known ones.
absl::StatusOr<const GgufArchitecture*> FindGgufArchitectureOf(absl::string_view model_type);

// Row `row` of a Hugging Face q or k projection with interleaved heads lies at this row in the file: within a head of d rows the file
// alternates between the two halves: 0, d/2, 1, d/2 + 1, ...
int64_t InterleavedGgufRow(int64_t row, int64_t head_dim);

// Length of a side; 0 for kNone.
int64_t SideLength(GgufSide side, const GgufSizes& sizes);

// Errors: kDataLoss for a missing, mistyped or absurd value; kUnimplemented for sizes that differ by layer, mixtures of experts, keys and
// values of different sizes, partial rotation.
absl::StatusOr<GgufSizes> ReadGgufSizes(const GgufFile& file, const GgufArchitecture& architecture);

}  // namespace pith
