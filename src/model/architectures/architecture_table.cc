#include "absl/strings/str_join.h"
#include "base/status.h"
#include "model/architectures/architecture.h"

namespace pith {

// Defined in the files of this folder.
absl::StatusOr<DecoderConfig> ParseLlamaConfig(const Json& config);
absl::StatusOr<DecoderConfig> ParseQwen2Config(const Json& config);
absl::StatusOr<DecoderConfig> ParseQwen3Config(const Json& config);
absl::StatusOr<DecoderConfig> ParseGemma3TextConfig(const Json& config);
absl::StatusOr<DecoderConfig> ParseGemma3Config(const Json& config);  // multimodal checkpoint: its "text_config"

namespace {

constexpr LayerNormNames kPreNorms = {};
constexpr LayerNormNames kSandwichNorms = {.post_attention_norm = "post_attention_layernorm",
                                           .mlp_norm = "pre_feedforward_layernorm",
                                           .post_mlp_norm = "post_feedforward_layernorm"};

constexpr Architecture kArchitectures[] = {
    {"llama", "LlamaForCausalLM", ParseLlamaConfig, kPreNorms},
    {"qwen2", "Qwen2ForCausalLM", ParseQwen2Config, kPreNorms},
    {"qwen3", "Qwen3ForCausalLM", ParseQwen3Config, kPreNorms},
    {"gemma3_text", "Gemma3ForCausalLM", ParseGemma3TextConfig, kSandwichNorms},
    {"gemma3", "Gemma3ForConditionalGeneration", ParseGemma3Config, kSandwichNorms},
};

}  // namespace

absl::Span<const Architecture> AllArchitectures() { return kArchitectures; }

absl::StatusOr<const Architecture*> FindArchitecture(absl::string_view model_type) {
  for (const Architecture& row : kArchitectures) {
    if (row.model_type == model_type) return &row;
  }
  const std::string known = absl::StrJoin(kArchitectures, ", ", [](std::string* out, const Architecture& row) { *out += row.model_type; });
  return NotSupportedError("model_type: expected one of ", known, "; found \"", Printable(model_type), "\"");
}

}  // namespace pith
