#include "artifact/gguf_config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

#include "base/status.h"

namespace pith {
namespace {

constexpr int64_t kMaxPositions = int64_t{1} << 24;

// A double that came from an f32, as the shortest decimal that names the f32: 1e-06 instead of 9.999999974752427e-07.
double ShortestDecimal(double value) {
  const float narrow = static_cast<float>(value);
  if (static_cast<double>(narrow) != value) return value;
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), narrow).ptr;
  double shortest = value;
  std::from_chars(text, end, shortest);
  return shortest;
}

absl::StatusOr<double> ReadNumber(const GgufMetadata& metadata, const std::string& key, double min, double max, double default_value) {
  ASSIGN_OR_RETURN(const double value, metadata.GetDouble(key, min, max, default_value));
  return ShortestDecimal(value);
}

absl::StatusOr<Json> MakeYarn(const GgufMetadata& metadata, const std::string& prefix, double factor) {
  Json scaling = {{"rope_type", "yarn"}, {"factor", factor}};
  ASSIGN_OR_RETURN(scaling["original_max_position_embeddings"],
                   metadata.GetInt(prefix + "rope.scaling.original_context_length", 1, kMaxPositions));
  for (const char* name : {"beta_fast", "beta_slow"}) {
    const std::string key = absl::StrCat(prefix, "rope.scaling.yarn_", name);
    if (!metadata.Has(key)) continue;
    ASSIGN_OR_RETURN(scaling[name], ReadNumber(metadata, key, 1e-3, 1e6, 0));
  }
  ASSIGN_OR_RETURN(const double old_attention, ReadNumber(metadata, prefix + "rope.scaling.attn_factor", 1e-3, 1e3, 1.0));
  ASSIGN_OR_RETURN(const double attention, ReadNumber(metadata, prefix + "rope.scaling.yarn_attn_factor", 1e-3, 1e3, old_attention));
  // There the factor multiplies the usual temperature; Hugging Face's attention_factor is the product.
  if (attention != 1.0) scaling["attention_factor"] = attention * (0.1 * std::log(factor) + 1.0);
  ASSIGN_OR_RETURN(const double extrapolation, ReadNumber(metadata, prefix + "rope.scaling.yarn_ext_factor", -1.0, 1e3, 1.0));
  if (extrapolation != 1.0 && extrapolation != -1.0) {
    return NotSupportedError(prefix, "rope.scaling.yarn_ext_factor: expected 1, found ", extrapolation);
  }
  return scaling;
}

// Divisors of the frequencies under Llama 3.1's scaling; [head_dim / 2].
std::vector<double> Llama3Factors(double theta, double factor, int64_t original_context, int64_t head_dim) {
  constexpr double kLow = 1.0, kHigh = 4.0;
  std::vector<double> factors;
  for (int64_t i = 0; i < head_dim; i += 2) {
    const double wavelength = 2 * std::numbers::pi * std::pow(theta, static_cast<double>(i) / static_cast<double>(head_dim));
    const double turns = static_cast<double>(original_context) / wavelength;
    const double smooth = std::clamp((turns - kLow) / (kHigh - kLow), 0.0, 1.0);
    factors.push_back(1.0 / ((1.0 - smooth) / factor + smooth));
  }
  return factors;
}

// The rope_freqs.weight tensor holds the result of Llama 3.1's scaling, not its parameters: they are recognized by trying.
absl::StatusOr<Json> RecognizeLlama3(const GgufFile& file, const GgufTensor& tensor, double theta, int64_t head_dim) {
  constexpr int64_t kOriginalContext = 8192;
  if (tensor.shape != Shape({head_dim / 2}) || tensor.type->dtype != DType::kF32 || !tensor.type->is_float()) {
    return BadFileError("rope_freqs.weight: expected F32 [", head_dim / 2, "], found ", tensor.type->name, " ", ShapeName(tensor.shape));
  }
  std::vector<float> stored(static_cast<size_t>(head_dim / 2));
  RETURN_IF_ERROR(ConvertToFloat(TensorView{DType::kF32, tensor.shape, file.Bytes(tensor).data()}, absl::MakeSpan(stored)));
  const double factor = *std::max_element(stored.begin(), stored.end());
  if (std::all_of(stored.begin(), stored.end(), [](float f) { return f == 1.0f; })) return Json(nullptr);
  const std::vector<double> expected = Llama3Factors(theta, factor, kOriginalContext, head_dim);
  for (size_t i = 0; i < stored.size(); ++i) {
    if (!(std::abs(stored[i] - expected[i]) <= 1e-3 * expected[i])) {
      return NotSupportedError("rope_freqs.weight[", i, "]: expected ", expected[i], " (llama3 scaling by ", factor, " of ",
                               kOriginalContext, " positions), found ", stored[i]);
    }
  }
  return Json{{"rope_type", "llama3"},
              {"factor", factor},
              {"low_freq_factor", 1.0},
              {"high_freq_factor", 4.0},
              {"original_max_position_embeddings", kOriginalContext}};
}

absl::StatusOr<Json> MakeRopeScaling(const GgufFile& file, const std::string& prefix, double theta, int64_t head_dim) {
  const GgufMetadata& metadata = file.metadata();
  if (const GgufTensor* tensor = file.Find("rope_freqs.weight"); tensor != nullptr) return RecognizeLlama3(file, *tensor, theta, head_dim);
  ASSIGN_OR_RETURN(const double old_linear, ReadNumber(metadata, prefix + "rope.scale_linear", 1e-3, 1e6, 1.0));
  ASSIGN_OR_RETURN(const std::string type, metadata.GetString(prefix + "rope.scaling.type", old_linear == 1.0 ? "none" : "linear"));
  if (type == "none") return Json(nullptr);
  ASSIGN_OR_RETURN(const double factor, ReadNumber(metadata, prefix + "rope.scaling.factor", 1.0, 1e6, old_linear));
  if (type == "linear") return factor == 1.0 ? Json(nullptr) : Json{{"rope_type", "linear"}, {"factor", factor}};
  if (type == "yarn") return MakeYarn(metadata, prefix, factor);
  return NotSupportedError(prefix, "rope.scaling.type: expected none, linear or yarn, found \"", Printable(type), "\"");
}

bool HasBias(const GgufFile& file, absl::string_view module) { return file.Find(absl::StrCat("blk.0.", module, ".bias")) != nullptr; }

}  // namespace

absl::StatusOr<Json> MakeGgufConfig(const GgufFile& file, const GgufArchitecture& architecture, const GgufSizes& sizes,
                                    const TokenizerFiles& tokenizer) {
  const GgufMetadata& metadata = file.metadata();
  const std::string prefix = absl::StrCat(architecture.name, ".");
  Json config = {{"architectures", {std::string(architecture.class_name)}},
                 {"model_type", std::string(architecture.model_type)},
                 {"hidden_size", sizes.hidden_size},
                 {"intermediate_size", sizes.intermediate_size},
                 {"num_hidden_layers", sizes.num_layers},
                 {"num_attention_heads", sizes.num_heads},
                 {"num_key_value_heads", sizes.num_kv_heads},
                 {"head_dim", sizes.head_dim},
                 {"vocab_size", sizes.vocab_size},
                 {"tie_word_embeddings", file.Find("output.weight") == nullptr},
                 {"torch_dtype", "bfloat16"}};
  ASSIGN_OR_RETURN(config["max_position_embeddings"], metadata.GetInt(prefix + "context_length", 1, kMaxPositions));
  ASSIGN_OR_RETURN(const double eps, metadata.GetDouble(prefix + "attention.layer_norm_rms_epsilon", 1e-12, 0.1));
  config["rms_norm_eps"] = ShortestDecimal(eps);
  ASSIGN_OR_RETURN(const double theta, ReadNumber(metadata, prefix + "rope.freq_base", 2.0, 1e15, 10000.0));
  config["rope_theta"] = theta;
  ASSIGN_OR_RETURN(config["rope_scaling"], MakeRopeScaling(file, prefix, theta, sizes.head_dim));
  if (architecture.name == "llama") {
    config["attention_bias"] = HasBias(file, "attn_q");
    config["mlp_bias"] = HasBias(file, "ffn_gate");
  }
  if (tokenizer.bos_id >= 0) config["bos_token_id"] = tokenizer.bos_id;
  if (tokenizer.eos_id >= 0) config["eos_token_id"] = tokenizer.eos_id;
  RETURN_IF_ERROR(architecture.add_config(metadata, sizes, &config));
  return config;
}

absl::StatusOr<Json> MakeGgufGenerationConfig(const GgufMetadata& metadata, const TokenizerFiles& tokenizer) {
  // Tokens that end a turn or a text in the vocabularies they occur in, whatever the metadata calls eos.
  constexpr absl::string_view kEndTokens[] = {"<|im_end|>",      "<|endoftext|>", "<|eot_id|>",   "<|eom_id|>",
                                              "<|end_of_text|>", "<|end|>",       "<end_of_turn>"};
  constexpr int32_t kControl = 3;
  const int64_t num_tokens = static_cast<int64_t>(tokenizer.tokens.size());
  Json generation = Json::object();
  if (tokenizer.bos_id >= 0) generation["bos_token_id"] = tokenizer.bos_id;
  if (tokenizer.pad_id >= 0) generation["pad_token_id"] = tokenizer.pad_id;
  std::vector<int64_t> ends;
  const auto add = [&](int64_t id) {
    if (id >= 0 && std::find(ends.begin(), ends.end(), id) == ends.end()) ends.push_back(id);
  };
  add(tokenizer.eos_id);
  add(tokenizer.eot_id);
  ASSIGN_OR_RETURN(const int64_t end_of_message,
                   metadata.GetInt("tokenizer.ggml.eom_token_id", 0, std::max<int64_t>(num_tokens - 1, 0), -1));
  add(end_of_message);
  for (size_t i = 0; i < tokenizer.token_types.size() && i < tokenizer.tokens.size(); ++i) {
    if (tokenizer.token_types[i] != kControl) continue;
    if (std::find(std::begin(kEndTokens), std::end(kEndTokens), tokenizer.tokens[i]) != std::end(kEndTokens)) add(static_cast<int64_t>(i));
  }
  if (ends.size() == 1) generation["eos_token_id"] = ends[0];
  if (ends.size() > 1) generation["eos_token_id"] = ends;
  return generation;
}

}  // namespace pith
