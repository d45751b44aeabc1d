// One model on disk, whatever its container: an HF directory (safetensors, single or sharded; dense or quantized in any stored format of
// quantization/formats/format_table.h) or a GGUF file.
// Names, shapes and config are always those of Hugging Face, so nothing above this layer knows the container.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<ArtifactReader> reader, ArtifactReader::Open("model.gguf"));
//   ASSIGN_OR_RETURN(Weight q_proj, reader->ReadWeight("model.layers.0.self_attn.q_proj"));
//
// Open checks every header, range and shape against the files before any weight is touched. Thread-safe to read after Open.
// Errors: kNotFound (no such path), kDataLoss (bad file: path, field, expectation, finding), kUnimplemented (unknown format).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/file.h"
#include "base/json.h"
#include "quantization/quantized_tensor.h"
#include "tensor/tensor.h"

namespace pith {

// A weight matrix or vector as stored. Exactly one of `dense` and `quantized` is set.
struct Weight {
  std::string name;                 // tensor name without ".weight": "model.layers.0.mlp.down_proj"
  std::optional<TensorView> dense;  // F32, F16 or BF16; borrowed from the reader or from `storage`
  std::optional<QuantizedTensor> quantized;
  std::optional<InputQuantization> input;  // of a quantized weight whose layer multiplies quantized activations
  std::shared_ptr<const Tensor> storage;   // owns `dense` when it had to be rearranged
  int64_t stored_bytes = 0;                // in the file, scales and zero points included
};

// What the container knows of the tokenizer; the tokenizer module turns it into a Tokenizer.
struct TokenizerFiles {
  std::string tokenizer_json;  // HF directory: contents, empty when absent
  std::string tokenizer_config_json;
  std::string special_tokens_map_json;
  std::string chat_template_jinja;  // chat_template.jinja, or the GGUF tokenizer.chat_template
  // GGUF metadata, empty for HF directories:
  std::string gguf_model;  // "gpt2" (byte-level BPE) or "llama" (SentencePiece)
  std::string gguf_pre;    // "smollm", "qwen2", "llama-bpe", ...
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<int32_t> token_types;  // 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte
  std::vector<std::string> merges;
  int64_t bos_id = -1, eos_id = -1, unk_id = -1, pad_id = -1, eot_id = -1;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
};

// What ReadWeight would decode a quantized weight to (quantized_tensor.h), known without decoding it.
struct QuantizedForm {
  int bits = 0;
  QuantizationType type = QuantizationType::kInt;
  int64_t group_size = 0;
  bool has_zero_point = false, has_min = false;
  std::optional<InputQuantization> input;
  std::optional<QuantizationArgs> args;  // as the container's config declares the weight; nullopt where there is none (GGUF)
  DType scale = DType::kF32;             // the narrowest type sure to hold every scale and min exactly, or every unit where there are any
  int64_t unit_size = 0;                 // QuantizedTensor::unit_size
};

struct TensorInfo {  // one stored tensor, for reports
  std::string name;  // as stored in the container
  std::string type;  // "BF16", "I32", "Q4_K", ...
  Shape shape;       // HF order: rows first
  int64_t stored_bytes = 0;
  std::string file;                        // base name of the file it lies in
  std::optional<QuantizedForm> quantized;  // DescribeWeight of a quantized weight
};

// A file that weights are read from.
struct WeightFile {
  std::string name;  // base name
  FileIdentity identity;
};

class ArtifactReader {
 public:
  virtual ~ArtifactReader() = default;

  // `path`: a directory with config.json, or a .gguf file.
  static absl::StatusOr<std::unique_ptr<ArtifactReader>> Open(const std::string& path);

  const std::string& path() const { return path_; }
  // "huggingface" (dense), "gguf", or the quant_method of a quantized directory: "compressed-tensors", "gptq", "awq", "bitsandbytes",
  // "fp8".
  const std::string& format() const { return format_; }
  // config.json; for GGUF one with the same meaning made from its metadata (model_type, hidden_size, ...).
  const Json& config() const { return config_; }
  // generation_config.json, or an object with the eos/bos ids that the container names.
  const Json& generation_config() const { return generation_config_; }
  const TokenizerFiles& tokenizer_files() const { return tokenizer_files_; }
  // What a user should know of the files, one sentence each: a wrong label that was corrected. Logged as warnings by Open.
  const std::vector<std::string>& notes() const { return notes_; }

  virtual std::vector<TensorInfo> Tensors() const = 0;
  // The files behind Tensors(), as they were when they were opened. Empty: weights do not come from files (the default).
  virtual std::vector<WeightFile> WeightFiles() const { return {}; }
  // Module names that have a weight, in HF form without ".weight", sorted in layer order.
  virtual std::vector<std::string> WeightNames() const = 0;
  virtual bool HasWeight(absl::string_view name) const = 0;
  // Name, type, shape and bytes of a module's weight, in HF form, without decoding it. type: "BF16", "pack-quantized", "Q4_K", ...
  // Errors: kDataLoss when absent. The default implementation reads the weight.
  virtual absl::StatusOr<TensorInfo> DescribeWeight(absl::string_view name) const;
  // Full HF names of the plain tensors that are no module's weight (biases, KV scales), sorted in layer order; each can be read with
  // ReadTensor. The default implementation tries the bias of every module.
  virtual std::vector<std::string> PlainTensorNames() const;
  // The weight of a module: "model.embed_tokens", "model.layers.3.input_layernorm", "lm_head". Quantized modules are decoded into a
  // QuantizedTensor (q/k row order of GGUF llama files undone). Errors: kDataLoss when absent or inconsistent.
  virtual absl::StatusOr<Weight> ReadWeight(absl::string_view name) const = 0;
  // A plain tensor by its full HF name: "model.layers.0.self_attn.q_proj.bias". nullopt when absent.
  virtual absl::StatusOr<std::optional<Weight>> ReadTensor(absl::string_view name) const = 0;
  // SHA-256 over names, shapes and bytes of all tensors and of config.json (of a GGUF file: its metadata): the fingerprint that evidence
  // and drafters are bound to. The same for one file and for shards. Reads every byte. fingerprint.h has the recipe.
  virtual absl::StatusOr<std::string> Fingerprint() const = 0;

 protected:
  std::string path_, format_;
  Json config_, generation_config_;
  TokenizerFiles tokenizer_files_;
  std::vector<std::string> notes_;
};

}  // namespace pith
