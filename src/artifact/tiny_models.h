// For tests only: complete tiny models as GGUF bytes and as Hugging Face directories, with room to break them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "artifact/test_files.h"
#include "base/file.h"
#include "base/float_types.h"
#include "base/json.h"

namespace pith {

// A value in [-1, 1) that depends on the name and the index only; a multiple of 1/64, so every float type holds it exactly.
inline float TinyValue(const std::string& name, int64_t index) {
  const uint64_t hash = std::hash<std::string>()(name) + static_cast<uint64_t>(index) * 0x9E3779B97F4A7C15ull;
  return static_cast<float>(static_cast<int>((hash >> 33) % 128) - 64) / 64.0f;
}

inline std::vector<float> TinyValues(const std::string& name, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = TinyValue(name, i);
  return values;
}

// A GGUF model with F32 tensors whose values are TinyValues of their GGUF names.
struct TinyGguf {
  std::string architecture = "llama";
  int64_t layers = 2, hidden = 8, ffn = 12, heads = 4, kv_heads = 2, head_dim = 2, vocab = 7;
  bool output = false, tokenizer = true;
  std::set<std::string> omit_tensors, omit_keys;
  std::map<std::string, std::vector<int64_t>> dims;              // replaces a tensor's dimensions (fastest first)
  std::map<std::string, std::pair<uint32_t, std::string>> data;  // replaces a tensor's type and bytes
  std::function<void(GgufBuilder&)> more;                        // adds metadata and tensors at the end

  bool is(const std::string& name) const { return architecture == name; }

  void AddMetadata(GgufBuilder& b) const {
    const auto u32 = [&](const std::string& name, int64_t value) {
      const std::string key = absl::StrCat(architecture, ".", name);
      if (!omit_keys.contains(key)) b.U32(key, static_cast<uint32_t>(value));
    };
    if (!omit_keys.contains("general.architecture")) b.Str("general.architecture", architecture);
    u32("block_count", layers);
    u32("context_length", 64);
    u32("embedding_length", hidden);
    u32("feed_forward_length", ffn);
    u32("attention.head_count", heads);
    u32("attention.head_count_kv", kv_heads);
    if (head_dim != hidden / heads) u32("attention.key_length", head_dim);
    if (head_dim != hidden / heads) u32("attention.value_length", head_dim);
    if (is("gemma3")) u32("attention.sliding_window", 16);
    b.F32(architecture + ".attention.layer_norm_rms_epsilon", 1e-6f).F32(architecture + ".rope.freq_base", 100000.0f);
    if (!tokenizer) return;
    std::vector<std::string> tokens;
    std::vector<int32_t> types;
    for (int64_t i = 0; i < vocab; ++i) {
      tokens.push_back(i == 1 ? "<|im_end|>" : absl::StrCat("t", i));
      types.push_back(i < 3 ? 3 : 1);
    }
    b.Str("tokenizer.ggml.model", "gpt2").Str("tokenizer.ggml.pre", "smollm").Strings("tokenizer.ggml.tokens", tokens);
    b.Array("tokenizer.ggml.token_type", 5, types).Strings("tokenizer.ggml.merges", {"t 3", "t 4"});
    b.U32("tokenizer.ggml.bos_token_id", 0).U32("tokenizer.ggml.eos_token_id", 2).Bool("tokenizer.ggml.add_bos_token", false);
  }

  void AddTensor(GgufBuilder& b, const std::string& name, std::vector<int64_t> shape) const {
    if (omit_tensors.contains(name)) return;
    if (const auto it = dims.find(name); it != dims.end()) shape = it->second;
    if (const auto it = data.find(name); it != data.end()) {
      b.Tensor(name, shape, it->second.first, it->second.second);
      return;
    }
    int64_t count = 1;
    for (const int64_t dim : shape) count *= dim;
    b.Tensor(name, shape, 0, RawBytes(TinyValues(name, count)));
  }

  std::string Build() const {
    GgufBuilder b;
    AddMetadata(b);
    AddTensor(b, "token_embd.weight", {hidden, vocab});
    AddTensor(b, "output_norm.weight", {hidden});
    if (output) AddTensor(b, "output.weight", {hidden, vocab});
    for (int64_t i = 0; i < layers; ++i) {
      const std::string blk = absl::StrCat("blk.", i, ".");
      AddTensor(b, blk + "attn_norm.weight", {hidden});
      AddTensor(b, blk + "attn_q.weight", {hidden, heads * head_dim});
      AddTensor(b, blk + "attn_k.weight", {hidden, kv_heads * head_dim});
      AddTensor(b, blk + "attn_v.weight", {hidden, kv_heads * head_dim});
      AddTensor(b, blk + "attn_output.weight", {heads * head_dim, hidden});
      AddTensor(b, blk + "ffn_norm.weight", {hidden});
      AddTensor(b, blk + "ffn_gate.weight", {hidden, ffn});
      AddTensor(b, blk + "ffn_up.weight", {hidden, ffn});
      AddTensor(b, blk + "ffn_down.weight", {ffn, hidden});
      if (is("qwen2")) {
        AddTensor(b, blk + "attn_q.bias", {heads * head_dim});
        AddTensor(b, blk + "attn_k.bias", {kv_heads * head_dim});
        AddTensor(b, blk + "attn_v.bias", {kv_heads * head_dim});
      }
      if (is("qwen3") || is("gemma3")) {
        AddTensor(b, blk + "attn_q_norm.weight", {head_dim});
        AddTensor(b, blk + "attn_k_norm.weight", {head_dim});
      }
      if (is("gemma3")) {
        AddTensor(b, blk + "post_attention_norm.weight", {hidden});
        AddTensor(b, blk + "post_ffw_norm.weight", {hidden});
      }
    }
    if (more) more(b);
    return b.Build();
  }
};

// One tensor of a Hugging Face directory made by hand.
struct TinyTensor {
  std::string name, dtype;
  std::vector<int64_t> shape;
  std::string data;
};

inline std::string Bf16Bytes(const std::vector<float>& values) {
  std::vector<bfloat16> narrow;
  for (const float value : values) narrow.push_back(ToBfloat16(value));
  return RawBytes(narrow);
}

// A BF16 tensor of TinyValues.
inline TinyTensor Bf16Tensor(const std::string& name, const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  return {name, "BF16", shape, Bf16Bytes(TinyValues(name, count))};
}

// A safetensors file with the tensors in the given order, after `padding` extra header spaces (odd: unaligned data).
inline std::string TinySafetensors(const std::vector<TinyTensor>& tensors, int padding = 0) {
  Json header = Json::object();
  std::string data;
  for (const TinyTensor& tensor : tensors) {
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {data.size(), data.size() + tensor.data.size()}}};
    data += tensor.data;
  }
  std::string text = DumpJson(header);
  text.resize((text.size() + 7) / 8 * 8 + static_cast<size_t>(padding), ' ');
  return SafetensorsBytes(text, data);
}

// A Hugging Face llama of one layer in BF16.
struct TinyDirectory {
  int64_t hidden = 8, ffn = 12, vocab = 7;
  Json config = {{"model_type", "llama"}, {"hidden_size", 8}, {"tie_word_embeddings", true}, {"eos_token_id", 2}};
  std::vector<TinyTensor> tensors = {
      Bf16Tensor("model.embed_tokens.weight", {7, 8}),          Bf16Tensor("model.norm.weight", {8}),
      Bf16Tensor("model.layers.0.input_layernorm.weight", {8}), Bf16Tensor("model.layers.0.self_attn.q_proj.weight", {8, 8}),
      Bf16Tensor("model.layers.0.self_attn.q_proj.bias", {8}),  Bf16Tensor("model.layers.0.mlp.up_proj.weight", {12, 8}),
  };
  int padding = 0;

  TinyTensor* Find(const std::string& name) {
    for (TinyTensor& tensor : tensors) {
      if (tensor.name == name) return &tensor;
    }
    return nullptr;
  }
  void Remove(const std::string& name) {
    std::erase_if(tensors, [&](const TinyTensor& tensor) { return tensor.name == name; });
  }
  // Stores mlp.up_proj as W4A16: [2, 64] in groups of 32, code (7 * row + column) % 16, scales 0.5, 0.25 and 1, 2.
  void Quantize() {
    const std::string up = "model.layers.0.mlp.up_proj";
    Remove(up + ".weight");
    std::vector<uint32_t> words;
    for (uint32_t row = 0; row < 2; ++row) {
      for (uint32_t w = 0; w < 8; ++w) {
        uint32_t word = 0;
        for (uint32_t n = 0; n < 8; ++n) word |= (row * 7 + w * 8 + n) % 16 << (4 * n);
        words.push_back(word);
      }
    }
    tensors.push_back({up + ".weight_packed", "I32", {2, 8}, RawBytes(words)});
    tensors.push_back({up + ".weight_scale", "BF16", {2, 2}, Bf16Bytes({0.5f, 0.25f, 1.0f, 2.0f})});
    tensors.push_back({up + ".weight_shape", "I64", {2}, RawBytes(std::vector<int64_t>{2, 64})});
    config["quantization_config"] = {
        {"quant_method", "compressed-tensors"}, {"format", "pack-quantized"}, {"ignore", {"lm_head", "re:.*q_proj"}}};
    config["quantization_config"]["config_groups"]["group_0"] = {
        {"targets", {"Linear"}},
        {"weights", {{"num_bits", 4}, {"type", "int"}, {"symmetric", true}, {"strategy", "group"}, {"group_size", 32}}}};
  }
  // Stores mlp.up_proj as W8A8 with a static scale of 0.5: [2, 4], codes 1 .. 8, scales 0.5 and 2 per channel.
  void QuantizeStatically() {
    const std::string up = "model.layers.0.mlp.up_proj";
    Remove(up + ".weight");
    tensors.push_back({up + ".weight", "I8", {2, 4}, RawBytes(std::vector<int8_t>{1, 2, 3, 4, 5, 6, 7, 8})});
    tensors.push_back({up + ".weight_scale", "BF16", {2, 1}, Bf16Bytes({0.5f, 2.0f})});
    tensors.push_back({up + ".input_scale", "BF16", {1}, Bf16Bytes({0.5f})});
    config["quantization_config"] = {
        {"quant_method", "compressed-tensors"}, {"format", "int-quantized"}, {"ignore", {"lm_head", "re:.*q_proj"}}};
    config["quantization_config"]["config_groups"]["group_0"] = {
        {"targets", {"Linear"}},
        {"weights", {{"num_bits", 8}, {"type", "int"}, {"strategy", "channel"}}},
        {"input_activations", {{"num_bits", 8}, {"type", "int"}, {"symmetric", true}, {"strategy", "tensor"}, {"dynamic", false}}}};
  }
  // Stores mlp.up_proj as LLM_INT8: [2, 4], codes 1 .. 8 of 0.5 and 2 per channel, columns 1 and 3 kept as 10, 20 and 30, 40.
  void QuantizeWithOutlierColumns() {
    const std::string up = "model.layers.0.mlp.up_proj";
    Remove(up + ".weight");
    tensors.push_back({up + ".weight", "I8", {2, 4}, RawBytes(std::vector<int8_t>{1, 2, 3, 4, 5, 6, 7, 8})});
    tensors.push_back({up + ".SCB", "F32", {2}, RawBytes(std::vector<float>{63.5f, 254.0f})});
    tensors.push_back({up + ".outlier_index", "I32", {2}, RawBytes(std::vector<int32_t>{1, 3})});
    tensors.push_back({up + ".outlier_weight", "BF16", {2, 2}, Bf16Bytes({10, 20, 30, 40})});
    config["quantization_config"] = {{"quant_method", "bitsandbytes"},
                                     {"load_in_8bit", true},
                                     {"llm_int8_threshold", 6.0},
                                     {"llm_int8_outlier_columns", "stored"},
                                     {"llm_int8_skip_modules", {"lm_head", "q_proj"}}};
  }
  void Write(const std::string& directory) const {
    WriteTestFile(JoinPath(directory, "config.json"), DumpJson(config, 2));
    WriteTestFile(JoinPath(directory, "model.safetensors"), TinySafetensors(tensors, padding));
  }
};

}  // namespace pith
