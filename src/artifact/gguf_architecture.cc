#include "artifact/gguf_architecture.h"

#include "absl/strings/str_join.h"
#include "base/status.h"

namespace pith {
namespace {

using Side = GgufSide;
using Bias = GgufBias;

constexpr GgufModule kLlamaLayer[] = {
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj", Side::kQueries, Side::kHidden, Bias::kOptional, true},
    {"attn_k", "self_attn.k_proj", Side::kKeys, Side::kHidden, Bias::kOptional, true},
    {"attn_v", "self_attn.v_proj", Side::kKeys, Side::kHidden, Bias::kOptional},
    {"attn_output", "self_attn.o_proj", Side::kHidden, Side::kQueries, Bias::kOptional},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj", Side::kIntermediate, Side::kHidden, Bias::kOptional},
    {"ffn_up", "mlp.up_proj", Side::kIntermediate, Side::kHidden, Bias::kOptional},
    {"ffn_down", "mlp.down_proj", Side::kHidden, Side::kIntermediate, Bias::kOptional},
};

constexpr GgufModule kQwen2Layer[] = {
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj", Side::kQueries, Side::kHidden, Bias::kRequired},
    {"attn_k", "self_attn.k_proj", Side::kKeys, Side::kHidden, Bias::kRequired},
    {"attn_v", "self_attn.v_proj", Side::kKeys, Side::kHidden, Bias::kRequired},
    {"attn_output", "self_attn.o_proj", Side::kHidden, Side::kQueries},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj", Side::kIntermediate, Side::kHidden},
    {"ffn_up", "mlp.up_proj", Side::kIntermediate, Side::kHidden},
    {"ffn_down", "mlp.down_proj", Side::kHidden, Side::kIntermediate},
};

constexpr GgufModule kQwen3Layer[] = {
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj", Side::kQueries, Side::kHidden},
    {"attn_k", "self_attn.k_proj", Side::kKeys, Side::kHidden},
    {"attn_v", "self_attn.v_proj", Side::kKeys, Side::kHidden},
    {"attn_q_norm", "self_attn.q_norm", Side::kHeadDim},
    {"attn_k_norm", "self_attn.k_norm", Side::kHeadDim},
    {"attn_output", "self_attn.o_proj", Side::kHidden, Side::kQueries},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj", Side::kIntermediate, Side::kHidden},
    {"ffn_up", "mlp.up_proj", Side::kIntermediate, Side::kHidden},
    {"ffn_down", "mlp.down_proj", Side::kHidden, Side::kIntermediate},
};

constexpr GgufModule kGemma3Layer[] = {
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj", Side::kQueries, Side::kHidden},
    {"attn_k", "self_attn.k_proj", Side::kKeys, Side::kHidden},
    {"attn_v", "self_attn.v_proj", Side::kKeys, Side::kHidden},
    {"attn_q_norm", "self_attn.q_norm", Side::kHeadDim},
    {"attn_k_norm", "self_attn.k_norm", Side::kHeadDim},
    {"attn_output", "self_attn.o_proj", Side::kHidden, Side::kQueries},
    {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_norm", "pre_feedforward_layernorm"},
    {"ffn_gate", "mlp.gate_proj", Side::kIntermediate, Side::kHidden},
    {"ffn_up", "mlp.up_proj", Side::kIntermediate, Side::kHidden},
    {"ffn_down", "mlp.down_proj", Side::kHidden, Side::kIntermediate},
    {"post_ffw_norm", "post_feedforward_layernorm"},
};

absl::Status AddLlamaConfig(const GgufMetadata&, const GgufSizes&, Json* config) {
  (*config)["hidden_act"] = "silu";
  return absl::OkStatus();
}

absl::Status AddQwen2Config(const GgufMetadata&, const GgufSizes&, Json* config) {
  (*config)["hidden_act"] = "silu";
  (*config)["use_sliding_window"] = false;
  return absl::OkStatus();
}

absl::Status AddQwen3Config(const GgufMetadata&, const GgufSizes&, Json* config) {
  (*config)["hidden_act"] = "silu";
  (*config)["attention_bias"] = false;
  (*config)["use_sliding_window"] = false;
  return absl::OkStatus();
}

absl::Status AddGemma3Config(const GgufMetadata& metadata, const GgufSizes& sizes, Json* config) {
  constexpr int64_t kPattern = 6;       // the last of six layers attends to everything
  constexpr int64_t kLayersOf27B = 62;  // the one size whose queries are scaled by hidden_size / num_heads
  ASSIGN_OR_RETURN(const int64_t window, metadata.GetInt("gemma3.attention.sliding_window", 1, int64_t{1} << 24));
  ASSIGN_OR_RETURN(const double local_theta, metadata.GetDouble("gemma3.rope.freq_base_swa", 2.0, 1e15, 10000.0));
  Json layer_types = Json::array();
  for (int64_t i = 0; i < sizes.num_layers; ++i) layer_types.push_back((i + 1) % kPattern == 0 ? "full_attention" : "sliding_attention");
  (*config)["layer_types"] = std::move(layer_types);
  (*config)["sliding_window"] = window;
  (*config)["rope_local_base_freq"] = local_theta;
  (*config)["query_pre_attn_scalar"] = sizes.num_layers == kLayersOf27B ? sizes.hidden_size / sizes.num_heads : sizes.head_dim;
  (*config)["hidden_activation"] = "gelu_pytorch_tanh";
  (*config)["attention_bias"] = false;
  (*config)["attn_logit_softcapping"] = nullptr;
  (*config)["final_logit_softcapping"] = nullptr;
  return absl::OkStatus();
}

// THE TABLE.
constexpr GgufArchitecture kArchitectures[] = {
    {"llama", "llama", "LlamaForCausalLM", kLlamaLayer, false, AddLlamaConfig},
    {"qwen2", "qwen2", "Qwen2ForCausalLM", kQwen2Layer, false, AddQwen2Config},
    {"qwen3", "qwen3", "Qwen3ForCausalLM", kQwen3Layer, false, AddQwen3Config},
    {"gemma3", "gemma3_text", "Gemma3ForCausalLM", kGemma3Layer, true, AddGemma3Config},
};

constexpr int64_t kMaxLayers = 512, kMaxHidden = 65536, kMaxIntermediate = int64_t{1} << 20, kMaxHeads = 1024, kMaxHeadDim = 1024;
constexpr int64_t kMaxVocab = int64_t{1} << 24;

// A size that some architectures give per layer.
absl::StatusOr<int64_t> ReadUniform(const GgufMetadata& metadata, const std::string& key, int64_t max, int64_t num_layers) {
  const GgufValue* value = metadata.Find(key);
  if (value == nullptr || value->type != GgufValueType::kArray) return metadata.GetInt(key, 1, max);
  ASSIGN_OR_RETURN(const std::vector<int64_t> values, metadata.GetInts(key, 0, max));
  if (static_cast<int64_t>(values.size()) != num_layers) {
    return BadFileError(key, ": expected one value per layer (", num_layers, "), found ", values.size());
  }
  for (const int64_t each : values) {
    if (each != values[0]) return NotSupportedError(key, ": expected the same value for all layers, found ", values[0], " and ", each);
  }
  if (values[0] < 1) return BadFileError(key, ": expected at least 1, found ", values[0]);
  return values[0];
}

absl::Status CheckVocabulary(const GgufFile& file, const std::string& prefix, GgufSizes* sizes) {
  const GgufTensor* embedding = file.Find("token_embd.weight");
  if (embedding == nullptr) return BadFileError("token_embd.weight: expected the embedding, found no such tensor");
  if (embedding->shape.size() != 2 || embedding->shape[1] != sizes->hidden_size || embedding->shape[0] < 1 ||
      embedding->shape[0] > kMaxVocab) {
    return BadFileError("token_embd.weight: expected [vocabulary, ", sizes->hidden_size, "] with at most ", kMaxVocab, " rows, found ",
                        ShapeName(embedding->shape));
  }
  sizes->vocab_size = embedding->shape[0];
  ASSIGN_OR_RETURN(const int64_t stated, file.metadata().GetInt(prefix + "vocab_size", 1, kMaxVocab, sizes->vocab_size));
  if (stated != sizes->vocab_size) {
    return BadFileError(prefix, "vocab_size: expected ", sizes->vocab_size, " (rows of token_embd.weight), found ", stated);
  }
  return absl::OkStatus();
}

absl::Status CheckUnsupported(const GgufMetadata& metadata, const std::string& prefix, const GgufSizes& sizes) {
  ASSIGN_OR_RETURN(const int64_t experts, metadata.GetInt(prefix + "expert_count", 0, 1 << 20, 0));
  if (experts > 0) return NotSupportedError(prefix, "expert_count: expected none (mixtures of experts are not supported), found ", experts);
  ASSIGN_OR_RETURN(const int64_t value_length, metadata.GetInt(prefix + "attention.value_length", 1, kMaxHeadDim, sizes.head_dim));
  if (value_length != sizes.head_dim) {
    return NotSupportedError(prefix, "attention.value_length: expected ", sizes.head_dim, " (that of the keys), found ", value_length);
  }
  ASSIGN_OR_RETURN(const int64_t rotated, metadata.GetInt(prefix + "rope.dimension_count", 1, kMaxHeadDim, sizes.head_dim));
  if (rotated != sizes.head_dim) {
    return NotSupportedError(prefix, "rope.dimension_count: expected ", sizes.head_dim, " (the whole head), found ", rotated);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<const GgufArchitecture*> FindGgufArchitecture(absl::string_view name) {
  for (const GgufArchitecture& row : kArchitectures) {
    if (row.name == name) return &row;
  }
  const auto append_name = [](std::string* out, const GgufArchitecture& row) { absl::StrAppend(out, row.name); };
  return NotSupportedError("general.architecture: expected one of ", absl::StrJoin(kArchitectures, ", ", append_name), "; found \"",
                           Printable(name), "\"");
}

absl::StatusOr<const GgufArchitecture*> FindGgufArchitectureOf(absl::string_view model_type) {
  for (const GgufArchitecture& row : kArchitectures) {
    if (row.model_type == model_type) return &row;
  }
  const auto append_name = [](std::string* out, const GgufArchitecture& row) { absl::StrAppend(out, row.model_type); };
  return NotSupportedError("model_type: expected one of ", absl::StrJoin(kArchitectures, ", ", append_name), "; found \"",
                           Printable(model_type), "\"");
}

int64_t InterleavedGgufRow(int64_t row, int64_t head_dim) {
  const int64_t head = row / head_dim, within = row % head_dim, half = head_dim / 2;
  return head * head_dim + (within < half ? 2 * within : 2 * (within - half) + 1);
}

int64_t SideLength(GgufSide side, const GgufSizes& sizes) {
  switch (side) {
    case Side::kHidden: return sizes.hidden_size;
    case Side::kIntermediate: return sizes.intermediate_size;
    case Side::kQueries: return sizes.num_heads * sizes.head_dim;
    case Side::kKeys: return sizes.num_kv_heads * sizes.head_dim;
    case Side::kHeadDim: return sizes.head_dim;
    default: return 0;
  }
}

absl::StatusOr<GgufSizes> ReadGgufSizes(const GgufFile& file, const GgufArchitecture& architecture) {
  const GgufMetadata& metadata = file.metadata();
  const std::string prefix = absl::StrCat(architecture.name, ".");
  GgufSizes sizes;
  ASSIGN_OR_RETURN(sizes.num_layers, metadata.GetInt(prefix + "block_count", 1, kMaxLayers));
  ASSIGN_OR_RETURN(sizes.hidden_size, metadata.GetInt(prefix + "embedding_length", 1, kMaxHidden));
  ASSIGN_OR_RETURN(sizes.intermediate_size, ReadUniform(metadata, prefix + "feed_forward_length", kMaxIntermediate, sizes.num_layers));
  ASSIGN_OR_RETURN(sizes.num_heads, ReadUniform(metadata, prefix + "attention.head_count", kMaxHeads, sizes.num_layers));
  sizes.num_kv_heads = sizes.num_heads;
  const std::string kv_key = prefix + "attention.head_count_kv";
  if (metadata.Has(kv_key)) {
    ASSIGN_OR_RETURN(sizes.num_kv_heads, ReadUniform(metadata, kv_key, sizes.num_heads, sizes.num_layers));
  }
  if (sizes.num_heads % sizes.num_kv_heads != 0) {
    return BadFileError(kv_key, ": expected a divisor of ", sizes.num_heads, " (head_count), found ", sizes.num_kv_heads);
  }
  const std::string head_key = prefix + "attention.key_length";
  if (!metadata.Has(head_key) && sizes.hidden_size % sizes.num_heads != 0) {
    return BadFileError(head_key, ": expected a value, since ", sizes.num_heads, " heads do not divide embedding_length ",
                        sizes.hidden_size);
  }
  ASSIGN_OR_RETURN(sizes.head_dim, metadata.GetInt(head_key, 2, kMaxHeadDim, sizes.hidden_size / sizes.num_heads));
  if (sizes.head_dim < 2 || sizes.head_dim > kMaxHeadDim || sizes.head_dim % 2 != 0) {
    return BadFileError(head_key, ": expected an even number in [2, ", kMaxHeadDim, "], found ", sizes.head_dim);
  }
  RETURN_IF_ERROR(CheckUnsupported(metadata, prefix, sizes));
  RETURN_IF_ERROR(CheckVocabulary(file, prefix, &sizes));
  return sizes;
}

}  // namespace pith
