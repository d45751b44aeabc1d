#include "artifact/gguf_export_metadata.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/status.h"

namespace pith {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr int32_t kUnusedToken = 5;
constexpr uint32_t kQuantizationVersion = 2;

// rope_scaling, or nullptr when positions are not scaled; newer configs call it rope_parameters.
const Json* FindScaling(const Json& config, std::string& type) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* scaling = FindMember(config, key);
    if (scaling == nullptr || !scaling->is_object()) continue;
    for (const char* type_key : {"rope_type", "type"}) {
      const Json* value = FindMember(*scaling, type_key);
      if (value == nullptr || !value->is_string()) continue;
      type = value->get<std::string>();
      return type == "default" ? nullptr : scaling;
    }
  }
  return nullptr;
}

absl::StatusOr<double> ReadTheta(const Json& config) {
  ASSIGN_OR_RETURN(const double top, GetDouble(config, "rope_theta", 2.0, 1e15, 10000.0));
  const Json* parameters = FindMember(config, "rope_parameters");
  return parameters == nullptr ? top : GetDouble(*parameters, "rope_theta", 2.0, 1e15, top);
}

absl::Status AddRope(const Json& config, const std::string& prefix, GgufMetadataWriter& metadata) {
  ASSIGN_OR_RETURN(const double theta, ReadTheta(config));
  metadata.AddF32(prefix + "rope.freq_base", static_cast<float>(theta));
  std::string type;
  const Json* scaling = FindScaling(config, type);
  if (scaling == nullptr || type == "llama3") return absl::OkStatus();  // llama3: a tensor of its own
  if (type != "linear" && type != "yarn") {
    return NotSupportedError("rope_scaling: expected linear, yarn or llama3 for a GGUF file, found \"", Printable(type, 40), "\"");
  }
  ASSIGN_OR_RETURN(const double factor, GetDouble(*scaling, "factor", 1.0, 1e6));
  metadata.AddString(prefix + "rope.scaling.type", type);
  metadata.AddF32(prefix + "rope.scaling.factor", static_cast<float>(factor));
  if (type == "linear") return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t original, GetInt(*scaling, "original_max_position_embeddings", 1, kMaxSize));
  metadata.AddU32(prefix + "rope.scaling.original_context_length", static_cast<uint32_t>(original));
  for (const char* key : {"beta_fast", "beta_slow"}) {
    if (FindMember(*scaling, key) == nullptr) continue;
    ASSIGN_OR_RETURN(const double value, GetDouble(*scaling, key, 1e-3, 1e6));
    metadata.AddF32(absl::StrCat(prefix, "rope.scaling.yarn_", key), static_cast<float>(value));
  }
  if (FindMember(*scaling, "attention_factor") == nullptr) return absl::OkStatus();
  // There the factor multiplies the usual temperature; Hugging Face's attention_factor is the product.
  ASSIGN_OR_RETURN(const double attention, GetDouble(*scaling, "attention_factor", 1e-3, 1e3));
  metadata.AddF32(prefix + "rope.scaling.yarn_attn_factor", static_cast<float>(attention / (0.1 * std::log(factor) + 1.0)));
  return absl::OkStatus();
}

absl::Status AddSizes(const Json& config, const std::string& prefix, const GgufSizes& sizes, GgufMetadataWriter& metadata) {
  const auto add = [&](absl::string_view key, int64_t value) { metadata.AddU32(absl::StrCat(prefix, key), static_cast<uint32_t>(value)); };
  add("block_count", sizes.num_layers);
  ASSIGN_OR_RETURN(const int64_t context, GetInt(config, "max_position_embeddings", 1, kMaxSize));
  add("context_length", context);
  add("embedding_length", sizes.hidden_size);
  add("feed_forward_length", sizes.intermediate_size);
  add("attention.head_count", sizes.num_heads);
  add("attention.head_count_kv", sizes.num_kv_heads);
  add("attention.key_length", sizes.head_dim);
  add("attention.value_length", sizes.head_dim);
  add("rope.dimension_count", sizes.head_dim);
  add("vocab_size", sizes.vocab_size);
  ASSIGN_OR_RETURN(const double eps, GetDouble(config, "rms_norm_eps", 1e-12, 0.1, 1e-6));
  metadata.AddF32(prefix + "attention.layer_norm_rms_epsilon", static_cast<float>(eps));
  if (prefix != "gemma3.") return absl::OkStatus();
  ASSIGN_OR_RETURN(const int64_t window, GetInt(config, "sliding_window", 1, kMaxSize));
  add("attention.sliding_window", window);
  ASSIGN_OR_RETURN(const double local_theta, GetDouble(config, "rope_local_base_freq", 2.0, 1e15, 10000.0));
  metadata.AddF32(prefix + "rope.freq_base_swa", static_cast<float>(local_theta));
  return absl::OkStatus();
}

absl::Status AddTokenizer(const TokenizerFiles& tokenizer, int64_t vocab_size, GgufMetadataWriter& metadata) {
  if (tokenizer.gguf_model.empty()) return absl::OkStatus();
  const int64_t num_tokens = static_cast<int64_t>(tokenizer.tokens.size());
  if (num_tokens > vocab_size) {
    return BadFileError("vocabulary: expected at most ", vocab_size, " tokens (rows of the embedding), found ", num_tokens);
  }
  std::vector<std::string> tokens = tokenizer.tokens;
  std::vector<int32_t> types = tokenizer.token_types;
  if (types.empty()) types.assign(tokens.size(), 1);
  std::vector<float> scores = tokenizer.scores;
  for (int64_t id = num_tokens; id < vocab_size; ++id) {
    tokens.push_back(absl::StrCat("[PAD", id, "]"));
    types.push_back(kUnusedToken);
    if (!scores.empty()) scores.push_back(-1e4f);
  }
  metadata.AddString("tokenizer.ggml.model", tokenizer.gguf_model);
  if (!tokenizer.gguf_pre.empty()) metadata.AddString("tokenizer.ggml.pre", tokenizer.gguf_pre);
  metadata.AddStrings("tokenizer.ggml.tokens", tokens);
  metadata.AddInts("tokenizer.ggml.token_type", types);
  if (!scores.empty()) metadata.AddFloats("tokenizer.ggml.scores", scores);
  if (!tokenizer.merges.empty()) metadata.AddStrings("tokenizer.ggml.merges", tokenizer.merges);
  const std::pair<const char*, int64_t> ids[] = {{"bos", tokenizer.bos_id},
                                                 {"eos", tokenizer.eos_id},
                                                 {"unknown", tokenizer.unk_id},
                                                 {"padding", tokenizer.pad_id},
                                                 {"eot", tokenizer.eot_id}};
  for (const auto& [name, id] : ids) {
    if (id >= 0) metadata.AddU32(absl::StrCat("tokenizer.ggml.", name, "_token_id"), static_cast<uint32_t>(id));
  }
  if (tokenizer.add_bos.has_value()) metadata.AddBool("tokenizer.ggml.add_bos_token", *tokenizer.add_bos);
  if (tokenizer.add_eos.has_value()) metadata.AddBool("tokenizer.ggml.add_eos_token", *tokenizer.add_eos);
  if (tokenizer.add_space_prefix.has_value()) metadata.AddBool("tokenizer.ggml.add_space_prefix", *tokenizer.add_space_prefix);
  if (!tokenizer.chat_template_jinja.empty()) metadata.AddString("tokenizer.chat_template", tokenizer.chat_template_jinja);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<GgufSizes> ReadConfigSizes(const Json& config, int64_t vocab_size) {
  GgufSizes sizes;
  sizes.vocab_size = vocab_size;
  ASSIGN_OR_RETURN(sizes.num_layers, GetInt(config, "num_hidden_layers", 1, 512));
  ASSIGN_OR_RETURN(sizes.hidden_size, GetInt(config, "hidden_size", 1, kMaxSize));
  ASSIGN_OR_RETURN(sizes.intermediate_size, GetInt(config, "intermediate_size", 1, kMaxSize));
  ASSIGN_OR_RETURN(sizes.num_heads, GetInt(config, "num_attention_heads", 1, 1024));
  ASSIGN_OR_RETURN(sizes.num_kv_heads, GetInt(config, "num_key_value_heads", 1, 1024, sizes.num_heads));
  ASSIGN_OR_RETURN(sizes.head_dim, GetInt(config, "head_dim", 2, 1024, std::max<int64_t>(sizes.hidden_size / sizes.num_heads, 2)));
  return sizes;
}

absl::StatusOr<GgufMetadataWriter> MakeExportMetadata(const Json& config, const std::string& name, const GgufArchitecture& architecture,
                                                      const GgufSizes& sizes, const TokenizerFiles& tokenizer, uint32_t file_type) {
  GgufMetadataWriter metadata;
  const std::string prefix = absl::StrCat(architecture.name, ".");
  metadata.AddString("general.architecture", architecture.name);
  metadata.AddString("general.type", "model");
  if (!name.empty()) metadata.AddString("general.name", name);
  metadata.AddU32("general.file_type", file_type);
  metadata.AddU32("general.quantization_version", kQuantizationVersion);
  RETURN_IF_ERROR(AddSizes(config, prefix, sizes, metadata));
  RETURN_IF_ERROR(AddRope(config, prefix, metadata));
  RETURN_IF_ERROR(AddTokenizer(tokenizer, sizes.vocab_size, metadata));
  return metadata;
}

absl::StatusOr<std::vector<float>> MakeRopeFrequencies(const Json& config, int64_t head_dim) {
  std::string type;
  const Json* scaling = FindScaling(config, type);
  std::vector<float> divisors;
  if (scaling == nullptr || type != "llama3") return divisors;
  ASSIGN_OR_RETURN(const double theta, ReadTheta(config));
  ASSIGN_OR_RETURN(const double factor, GetDouble(*scaling, "factor", 1.0, 1e6));
  ASSIGN_OR_RETURN(const double low, GetDouble(*scaling, "low_freq_factor", 1e-3, 1e6, 1.0));
  ASSIGN_OR_RETURN(const double high, GetDouble(*scaling, "high_freq_factor", 1e-3, 1e6, 4.0));
  ASSIGN_OR_RETURN(const int64_t original, GetInt(*scaling, "original_max_position_embeddings", 1, kMaxSize, 8192));
  if (!(high > low)) return BadFileError("rope_scaling: high_freq_factor: expected more than ", low, ", found ", high);
  for (int64_t i = 0; i < head_dim; i += 2) {
    const double wavelength = 2 * std::numbers::pi * std::pow(theta, static_cast<double>(i) / static_cast<double>(head_dim));
    const double smooth = std::clamp((static_cast<double>(original) / wavelength - low) / (high - low), 0.0, 1.0);
    divisors.push_back(static_cast<float>(1.0 / ((1.0 - smooth) / factor + smooth)));
  }
  return divisors;
}

}  // namespace pith
