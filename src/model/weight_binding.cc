#include "model/weight_binding.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "base/heap_reuse.h"
#include "base/interrupt.h"
#include "base/status.h"
#include "model/stored_shape.h"
#include "model/weight_check.h"
#include "nn/dense_weight.h"

namespace pith {
namespace {

// Of the layers, the embedding and the head.
int64_t NumMatrices(const DecoderConfig& config) { return config.num_layers * 7 + 2; }

LinearSource SourceOf(const Weight& weight, std::vector<float> bias = {}) {
  return {.name = weight.name,
          .dense = weight.dense.has_value() ? &*weight.dense : nullptr,
          .quantized = weight.quantized.has_value() ? &*weight.quantized : nullptr,
          .input = weight.input,
          .bias = std::move(bias),
          .stored_bytes = weight.stored_bytes};
}

// Counts matrices for all threads that load.
class LoadProgress {
 public:
  LoadProgress(int64_t total, std::function<void(int64_t, int64_t)> callback) : total_(total), callback_(std::move(callback)) {}

  void Advance() {
    if (!callback_) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    callback_(++done_, total_);
  }

 private:
  const int64_t total_;
  const std::function<void(int64_t, int64_t)> callback_;
  std::mutex mutex_;
  int64_t done_ = 0;
};

// A part of a Linear.
struct LinearPart {
  std::string name;
  int64_t out = 0;
  bool has_bias = false;
};

class Binder {
 public:
  // `cache`: null, or where matrices come from instead; it is told what to read, and has read nothing yet when a Linear is returned.
  Binder(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map, const ComputeContext& context,
         LoadProgress& progress, PrepackCache* cache = nullptr)
      : reader_(reader), config_(config), map_(map), context_(context), progress_(progress), cache_(cache) {}

  absl::StatusOr<DecoderLayer> BindLayer(int64_t index);
  absl::Status BindEmbeddingAndHead(BoundDecoder& out);
  absl::StatusOr<Embedding> BindEmbedding(const std::string& name);
  absl::StatusOr<RmsNorm> BindFinalNorm() { return ReadNorm(map_.FinalNorm(), config_.hidden_size); }

 private:
  absl::StatusOr<Weight> ReadMatrix(const std::string& name);
  absl::StatusOr<std::vector<float>> ReadBias(const std::string& module, int64_t out, bool expected);
  absl::StatusOr<RmsNorm> ReadNorm(const std::string& name, int64_t dim);
  absl::StatusOr<std::optional<RmsNorm>> ReadLayerNorm(int64_t layer, const char* name, int64_t dim);
  absl::StatusOr<Linear> BindLinear(absl::Span<const LinearPart> parts);
  absl::StatusOr<std::vector<PrepackedPart>> DescribeParts(absl::Span<const LinearPart> parts, const PrepackedLayer& layer);
  absl::StatusOr<Linear> CachedLinear(absl::Span<const LinearPart> parts);
  absl::StatusOr<Linear> RequestLinear(const PrepackedLayer& layer, absl::Span<const PrepackedPart> parts);
  absl::StatusOr<Embedding> CachedEmbedding(const std::string& name);
  absl::Status BindAttention(DecoderLayer& layer);
  absl::Status BindMlp(DecoderLayer& layer);

  const ArtifactReader& reader_;
  const DecoderConfig& config_;
  const WeightMap& map_;
  const ComputeContext& context_;
  LoadProgress& progress_;
  PrepackCache* const cache_;
};

absl::StatusOr<Weight> Binder::ReadMatrix(const std::string& name) {
  RETURN_IF_ERROR(CheckInterrupted());
  ASSIGN_OR_RETURN(Weight weight, reader_.ReadWeight(name));
  weight.name = name;
  progress_.Advance();
  return weight;
}

absl::StatusOr<std::vector<float>> Binder::ReadBias(const std::string& module, int64_t out, bool expected) {
  const std::string name = absl::StrCat(module, ".bias");
  ASSIGN_OR_RETURN(const std::optional<Weight> weight, reader_.ReadTensor(name));
  if (!weight.has_value() || !weight->dense.has_value()) {
    if (expected) return BadFileError(name, ": expected a bias of ", out, " values, found no such tensor");
    return std::vector<float>();
  }
  ASSIGN_OR_RETURN(std::vector<float> bias, ReadVector(name, *weight->dense, out));
  if (expected) return bias;
  // Some exporters write zeros where the architecture has no bias; anything else would be silently ignored weight.
  if (std::any_of(bias.begin(), bias.end(), [](float b) { return b != 0.0f; })) {
    return BadFileError(name, ": expected no bias according to config.json, found one that is not zero");
  }
  return std::vector<float>();
}

absl::StatusOr<RmsNorm> Binder::ReadNorm(const std::string& name, int64_t dim) {
  ASSIGN_OR_RETURN(const Weight weight, reader_.ReadWeight(name));
  const std::string tensor = absl::StrCat(name, ".weight");
  if (!weight.dense.has_value()) return BadFileError(tensor, ": expected a dense vector, found a quantized matrix");
  return RmsNorm::Load(tensor, *weight.dense, dim, config_.rms_norm_eps, config_.norm_weight_plus_one);
}

absl::StatusOr<std::optional<RmsNorm>> Binder::ReadLayerNorm(int64_t layer, const char* name, int64_t dim) {
  if (name == nullptr) return std::nullopt;
  ASSIGN_OR_RETURN(RmsNorm norm, ReadNorm(map_.Layer(layer, name), dim));
  return norm;
}

absl::StatusOr<Linear> Binder::BindLinear(absl::Span<const LinearPart> parts) {
  if (cache_ != nullptr) return CachedLinear(parts);
  std::vector<Weight> weights;
  std::vector<std::vector<float>> biases;
  for (const LinearPart& part : parts) {
    ASSIGN_OR_RETURN(weights.emplace_back(), ReadMatrix(part.name));
    ASSIGN_OR_RETURN(biases.emplace_back(), ReadBias(part.name, part.out, part.has_bias));
  }
  std::vector<LinearSource> sources;
  for (size_t i = 0; i < weights.size(); ++i) sources.push_back(SourceOf(weights[i], std::move(biases[i])));
  return Linear::Load(sources, context_);
}

absl::StatusOr<Embedding> Binder::BindEmbedding(const std::string& name) {
  if (cache_ != nullptr) return CachedEmbedding(name);
  ASSIGN_OR_RETURN(const Weight table, ReadMatrix(name));
  return table.quantized.has_value() ? Embedding::LoadQuantized(SourceOf(table), context_)
                                     : Embedding::LoadDense(SourceOf(table), context_);
}

absl::StatusOr<std::vector<PrepackedPart>> Binder::DescribeParts(absl::Span<const LinearPart> parts, const PrepackedLayer& layer) {
  std::vector<PrepackedPart> described;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string& name = parts[i].name;
    if (layer.parts.size() != parts.size() || layer.parts[i].name != name) {
      return BadFileError(name, ": expected a prepacked layer of other parts");
    }
    PrepackedPart part{.storage = layer.parts[i]};
    ASSIGN_OR_RETURN(part.shape, StoredShape(reader_, name));
    part.storage.out = part.shape.out;
    part.storage.in = part.shape.in;
    part.storage.group_size = part.shape.group_size;
    ASSIGN_OR_RETURN(part.bias, ReadBias(name, parts[i].out, parts[i].has_bias));
    described.push_back(std::move(part));
  }
  return described;
}

absl::StatusOr<Linear> Binder::CachedLinear(absl::Span<const LinearPart> parts) {
  ASSIGN_OR_RETURN(const PrepackedLayer* layer, cache_->Find(parts[0].name));
  ASSIGN_OR_RETURN(const std::vector<PrepackedPart> described, DescribeParts(parts, *layer));
  return RequestLinear(*layer, described);
}

absl::StatusOr<Linear> Binder::RequestLinear(const PrepackedLayer& layer, absl::Span<const PrepackedPart> parts) {
  std::vector<absl::Span<uint8_t>> bytes;
  ASSIGN_OR_RETURN(Linear linear, Linear::FromPrepacked(parts, layer.matrices, context_, bytes));
  for (size_t i = 0; i < bytes.size(); ++i) RETURN_IF_ERROR(cache_->RequestMatrix(parts[0].storage.name, i, bytes[i]));
  return linear;
}

absl::StatusOr<Embedding> Binder::CachedEmbedding(const std::string& name) {
  const LinearPart part{.name = name, .out = config_.vocab_size};
  ASSIGN_OR_RETURN(const PrepackedLayer* layer, cache_->Find(name));
  ASSIGN_OR_RETURN(const std::vector<PrepackedPart> described, DescribeParts({&part, 1}, *layer));
  if (!described[0].shape.dense()) {
    ASSIGN_OR_RETURN(Linear matrix, RequestLinear(*layer, described));
    return Embedding::OfMatrix(described[0].storage, std::move(matrix));
  }
  absl::Span<uint8_t> bytes;
  Embedding embedding = Embedding::FromPrepacked(described[0].storage, context_, bytes);
  RETURN_IF_ERROR(cache_->RequestTable(name, bytes));
  return embedding;
}

absl::Status Binder::BindAttention(DecoderLayer& layer) {
  const int64_t hidden = config_.hidden_size, queries = config_.num_heads * config_.head_dim,
                keys = config_.num_kv_heads * config_.head_dim;
  ASSIGN_OR_RETURN(layer.qkv, BindLinear({{map_.Layer(layer.index, "self_attn.q_proj"), queries, config_.qkv_bias},
                                          {map_.Layer(layer.index, "self_attn.k_proj"), keys, config_.qkv_bias},
                                          {map_.Layer(layer.index, "self_attn.v_proj"), keys, config_.qkv_bias}}));
  ASSIGN_OR_RETURN(layer.o, BindLinear({{map_.Layer(layer.index, "self_attn.o_proj"), hidden, config_.o_bias}}));
  if (!config_.qk_norm) return absl::OkStatus();
  ASSIGN_OR_RETURN(layer.q_norm, ReadLayerNorm(layer.index, "self_attn.q_norm", config_.head_dim));
  ASSIGN_OR_RETURN(layer.k_norm, ReadLayerNorm(layer.index, "self_attn.k_norm", config_.head_dim));
  return absl::OkStatus();
}

absl::Status Binder::BindMlp(DecoderLayer& layer) {
  const int64_t hidden = config_.hidden_size, intermediate = config_.intermediate_size;
  ASSIGN_OR_RETURN(Linear gate_up, BindLinear({{map_.Layer(layer.index, "mlp.gate_proj"), intermediate, config_.mlp_bias},
                                               {map_.Layer(layer.index, "mlp.up_proj"), intermediate, config_.mlp_bias}}));
  ASSIGN_OR_RETURN(Linear down, BindLinear({{map_.Layer(layer.index, "mlp.down_proj"), hidden, config_.mlp_bias}}));
  layer.mlp = GatedMlp(std::move(gate_up), std::move(down), config_.activation);
  return absl::OkStatus();
}

absl::StatusOr<DecoderLayer> Binder::BindLayer(int64_t index) {
  DecoderLayer layer;
  layer.index = index;
  layer.window = config_.layer_window[index];
  ASSIGN_OR_RETURN(layer.attention_norm, ReadNorm(map_.Layer(index, map_.norms.attention_norm), config_.hidden_size));
  ASSIGN_OR_RETURN(layer.post_attention_norm, ReadLayerNorm(index, map_.norms.post_attention_norm, config_.hidden_size));
  ASSIGN_OR_RETURN(layer.mlp_norm, ReadNorm(map_.Layer(index, map_.norms.mlp_norm), config_.hidden_size));
  ASSIGN_OR_RETURN(layer.post_mlp_norm, ReadLayerNorm(index, map_.norms.post_mlp_norm, config_.hidden_size));
  RETURN_IF_ERROR(BindAttention(layer));
  RETURN_IF_ERROR(BindMlp(layer));
  return layer;
}

absl::Status Binder::BindEmbeddingAndHead(BoundDecoder& out) {
  ASSIGN_OR_RETURN(RmsNorm norm, BindFinalNorm());
  const bool tied = config_.tie_word_embeddings;
  if (tied) {
    progress_.Advance();
  } else {
    ASSIGN_OR_RETURN(out.embedding, BindEmbedding(map_.Embedding()));
  }
  ASSIGN_OR_RETURN(Linear loaded, BindLinear({{tied ? map_.Embedding() : map_.head, config_.vocab_size}}));
  const auto projection = std::make_shared<const Linear>(std::move(loaded));
  std::vector<TensorDataPath> head_path = projection->data_path();
  if (tied) {
    out.embedding = Embedding::Tied(StorageOf(head_path[0]), projection);
    head_path[0].tied_to = std::move(head_path[0].name);
    head_path[0].name = map_.head;
    head_path[0].stored_bytes = 0;  // the embedding's bytes, counted there; resident it is the head that counts
  }
  out.head = LmHead(std::move(norm), projection);
  out.data_path.insert(out.data_path.begin(), out.embedding.data_path());
  out.data_path.insert(out.data_path.end(), head_path.begin(), head_path.end());
  return absl::OkStatus();
}

// Layers that are decoded at the same time: each holds its largest matrices twice while it lasts.
constexpr int kMostLoaders = 8;

// Embedding and head first, since they are the largest, then the layers: each on one thread, so that threads never wait for each other.
// Of several errors the one of the first item is returned: items start in order, and only those behind a failed one are left out.
absl::Status BindInParallel(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map, const ComputeContext& context,
                            LoadProgress& progress, BoundDecoder& out) {
  const HeapReuse reuse;
  const int64_t items = config.num_layers + 1;
  out.layers.resize(static_cast<size_t>(config.num_layers));
  std::vector<absl::Status> status(static_cast<size_t>(items));
  std::atomic<int64_t> next = 0;
  context.pool->Run([&](int thread) {
    if (thread >= kMostLoaders) return;
    ThreadPool alone(1);
    ComputeContext single = context;
    single.pool = &alone;
    Binder binder(reader, config, map, single, progress);
    try {
      for (int64_t item = next++; item < items; item = next++) {
        absl::Status& result = status[static_cast<size_t>(item)];
        if (item == 0) {
          result = binder.BindEmbeddingAndHead(out);
        } else if (absl::StatusOr<DecoderLayer> layer = binder.BindLayer(item - 1); layer.ok()) {
          out.layers[static_cast<size_t>(item - 1)] = *std::move(layer);
        } else {
          result = layer.status();
        }
        if (!result.ok()) next = items;
      }
    } catch (...) {  // out of memory: the others need not go on; the pool hands it to the caller
      next = items;
      throw;
    }
  });
  for (const absl::Status& each : status) RETURN_IF_ERROR(each);
  return absl::OkStatus();
}

// Everything but the bytes of the matrices, which takes no time, then those bytes in one go.
absl::Status BindFromCache(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map, const ComputeContext& context,
                           const std::function<void(int64_t, int64_t)>& progress, PrepackCache& cache, BoundDecoder& out) {
  const int64_t matrices = NumMatrices(config);
  LoadProgress silent(matrices, nullptr);
  Binder binder(reader, config, map, context, silent, &cache);
  RETURN_IF_ERROR(binder.BindEmbeddingAndHead(out));
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    ASSIGN_OR_RETURN(out.layers.emplace_back(), binder.BindLayer(layer));
  }
  return cache.Read(*context.pool, [&](int64_t done, int64_t total) {
    if (progress) progress(total > 0 ? done * matrices / total : matrices, matrices);
  });
}

}  // namespace

absl::StatusOr<BoundDecoder> BindWeights(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map,
                                         const ComputeContext& context, const std::function<void(int64_t, int64_t)>& progress,
                                         PrepackCache* cache) {
  RETURN_IF_ERROR(CheckWeights(reader, config, map));
  BoundDecoder out;
  out.rotary = std::make_unique<RotaryEmbedding>(config.rope, config.head_dim, config.max_position_embeddings);
  if (config.rope_local != config.rope) {
    out.rotary_local = std::make_unique<RotaryEmbedding>(config.rope_local, config.head_dim, config.max_position_embeddings);
  }
  if (cache != nullptr) {
    RETURN_IF_ERROR(BindFromCache(reader, config, map, context, progress, *cache, out));
  } else {
    LoadProgress matrices(NumMatrices(config), progress);
    RETURN_IF_ERROR(BindInParallel(reader, config, map, context, matrices, out));
  }
  std::vector<TensorDataPath> layer_paths;
  for (DecoderLayer& layer : out.layers) {
    const bool local = layer.window > 0 && out.rotary_local != nullptr;
    layer.rotary = local ? out.rotary_local.get() : out.rotary.get();
    const Linear* const linears[] = {&layer.qkv, &layer.o, &layer.mlp.gate_up(), &layer.mlp.down()};
    for (const Linear* linear : linears) {
      layer_paths.insert(layer_paths.end(), linear->data_path().begin(), linear->data_path().end());
    }
  }
  out.data_path.insert(out.data_path.begin() + 1, layer_paths.begin(), layer_paths.end());  // between embedding and head
  return out;
}

absl::StatusOr<DecoderLayer> ReadDecoderLayer(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map,
                                              const ComputeContext& context, int64_t index) {
  LoadProgress silent(NumMatrices(config), nullptr);
  return Binder(reader, config, map, context, silent).BindLayer(index);
}

absl::StatusOr<Embedding> ReadEmbedding(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map,
                                        const ComputeContext& context) {
  LoadProgress silent(1, nullptr);
  return Binder(reader, config, map, context, silent).BindEmbedding(map.Embedding());
}

absl::StatusOr<RmsNorm> ReadFinalNorm(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map,
                                      const ComputeContext& context) {
  LoadProgress silent(1, nullptr);
  return Binder(reader, config, map, context, silent).BindFinalNorm();
}

absl::StatusOr<BoundDecoder> ReadEmbeddingAndHead(const ArtifactReader& reader, const DecoderConfig& config, const WeightMap& map,
                                                  const ComputeContext& context) {
  LoadProgress silent(2, nullptr);
  BoundDecoder out;
  RETURN_IF_ERROR(Binder(reader, config, map, context, silent).BindEmbeddingAndHead(out));
  return out;
}

}  // namespace pith
