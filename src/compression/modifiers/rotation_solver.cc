#include "compression/modifiers/rotation_solver.h"

#include <algorithm>

#include "base/status.h"
#include "compression/modifiers/hadamard.h"

namespace pith {
namespace {

absl::Status CheckMatrix(const MatrixView<float>& matrix, int64_t rows, int64_t cols, const std::string& name) {
  if (matrix.rows == rows && matrix.cols == cols) return absl::OkStatus();
  return UsageError("rotation: ", name, ": expected [", rows, ", ", cols, "], found [", matrix.rows, ", ", matrix.cols, "]");
}

// `optional`: an empty one is as good.
absl::Status CheckVector(absl::Span<const float> vector, int64_t size, bool optional, const std::string& name) {
  if (static_cast<int64_t>(vector.size()) == size || (optional && vector.empty())) return absl::OkStatus();
  return UsageError("rotation: ", name, ": expected ", size, " values, found ", vector.size());
}

absl::Status CheckLayer(const DecoderConfig& config, const RotatableLayer& layer, const std::string& name) {
  const int64_t hidden = config.hidden_size, queries = config.num_heads * config.head_dim, keys = config.num_kv_heads * config.head_dim;
  RETURN_IF_ERROR(CheckMatrix(layer.q, queries, hidden, name + ".q"));
  RETURN_IF_ERROR(CheckMatrix(layer.k, keys, hidden, name + ".k"));
  RETURN_IF_ERROR(CheckMatrix(layer.v, keys, hidden, name + ".v"));
  RETURN_IF_ERROR(CheckMatrix(layer.o, hidden, queries, name + ".o"));
  RETURN_IF_ERROR(CheckMatrix(layer.gate, config.intermediate_size, hidden, name + ".gate"));
  RETURN_IF_ERROR(CheckMatrix(layer.up, config.intermediate_size, hidden, name + ".up"));
  RETURN_IF_ERROR(CheckMatrix(layer.down, hidden, config.intermediate_size, name + ".down"));
  RETURN_IF_ERROR(CheckVector(layer.attention_norm, hidden, false, name + ".attention_norm"));
  RETURN_IF_ERROR(CheckVector(layer.mlp_norm, hidden, false, name + ".mlp_norm"));
  RETURN_IF_ERROR(CheckVector(layer.v_bias, keys, !config.qkv_bias, name + ".v_bias"));
  RETURN_IF_ERROR(CheckVector(layer.o_bias, hidden, !config.o_bias, name + ".o_bias"));
  return CheckVector(layer.down_bias, hidden, !config.mlp_bias, name + ".down_bias");
}

absl::Status CheckShapes(const DecoderConfig& config, const RotatableDecoder& weights) {
  RETURN_IF_ERROR(CheckMatrix(weights.embedding, config.vocab_size, config.hidden_size, "embedding"));
  RETURN_IF_ERROR(CheckMatrix(weights.head, config.vocab_size, config.hidden_size, "head"));
  RETURN_IF_ERROR(CheckVector(weights.final_norm, config.hidden_size, false, "final_norm"));
  if (static_cast<int64_t>(weights.layers.size()) != config.num_layers) {
    return UsageError("rotation: expected ", config.num_layers, " layers, found ", weights.layers.size());
  }
  for (size_t i = 0; i < weights.layers.size(); ++i) RETURN_IF_ERROR(CheckLayer(config, weights.layers[i], absl::StrCat("layers.", i)));
  return absl::OkStatus();
}

class DecoderRotator {
 public:
  DecoderRotator(const DecoderConfig& config, HadamardRotation residual, ThreadPool& pool)
      : config_(config), offset_(config.norm_weight_plus_one ? 1.0f : 0.0f), residual_(std::move(residual)), pool_(pool) {}

  // Takes a norm's weights into the layers it feeds.
  void FoldNorm(absl::Span<float> norm, std::initializer_list<MatrixView<float>> fed) const {
    for (const MatrixView<float>& matrix : fed) {
      pool_.ParallelFor(matrix.rows, 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t r = begin; r < end; ++r) {
          for (int64_t c = 0; c < matrix.cols; ++c) matrix.row(r)[c] *= offset_ + norm[static_cast<size_t>(c)];
        }
      });
    }
    std::fill(norm.begin(), norm.end(), 1 - offset_);
  }

  bool IsOne(absl::Span<const float> norm) const {
    return std::all_of(norm.begin(), norm.end(), [&](float weight) { return offset_ + weight == 1; });
  }

  // R1.
  void RotateReaders(std::initializer_list<MatrixView<float>> readers) const {
    for (const MatrixView<float>& matrix : readers) residual_.RotateRows(matrix, pool_);
  }
  void RotateWriter(MatrixView<float> matrix, absl::Span<float> bias) const {
    residual_.RotateColumns(matrix, pool_);
    RotateBias(residual_, bias);
  }

  // R2.
  void RotateHeads(const RotatableLayer& layer, const HadamardRotation& rotation) const {
    const int64_t dim = config_.head_dim;
    for (int64_t h = 0; h < config_.num_kv_heads; ++h) {
      rotation.RotateColumns({layer.v.row(h * dim), dim, layer.v.cols, layer.v.stride}, pool_);
      if (!layer.v_bias.empty()) RotateBias(rotation, layer.v_bias.subspan(static_cast<size_t>(h * dim), static_cast<size_t>(dim)));
    }
    for (int64_t h = 0; h < config_.num_heads; ++h) {
      rotation.RotateRows({layer.o.data + h * dim, layer.o.rows, dim, layer.o.stride}, pool_);
    }
  }

 private:
  void RotateBias(const HadamardRotation& rotation, absl::Span<float> bias) const {
    if (bias.empty()) return;
    rotation.RotateRows({bias.data(), 1, static_cast<int64_t>(bias.size())}, pool_);
  }

  const DecoderConfig& config_;
  const float offset_;  // what the config adds to norm weights
  const HadamardRotation residual_;
  ThreadPool& pool_;
};

}  // namespace

absl::Status CheckRotatable(const DecoderConfig& config, const RotationOptions& options) {
  if (config.post_norms) {
    return NotSupportedError("rotation: ", config.model_type, " has norms after attention and MLP, whose weights fold into no layer");
  }
  RETURN_IF_ERROR(Annotate(HadamardRotation::Create(config.hidden_size).status(), "hidden_size"));
  if (!options.rotate_heads) return absl::OkStatus();
  return Annotate(HadamardRotation::Create(config.head_dim).status(), "head_dim");
}

absl::StatusOr<RotationResult> RotateDecoder(const DecoderConfig& config, const RotatableDecoder& weights, const RotationOptions& options,
                                             ThreadPool& pool) {
  RETURN_IF_ERROR(CheckRotatable(config, options));
  RETURN_IF_ERROR(CheckShapes(config, weights));
  ASSIGN_OR_RETURN(HadamardRotation residual, HadamardRotation::Create(config.hidden_size, options.seed));
  const DecoderRotator rotator(config, std::move(residual), pool);
  const RotationResult result{.tied_embeddings = config.tie_word_embeddings && rotator.IsOne(weights.final_norm)};
  rotator.FoldNorm(weights.final_norm, {weights.head});
  rotator.RotateReaders({weights.embedding, weights.head});
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    const RotatableLayer& layer = weights.layers[i];
    rotator.FoldNorm(layer.attention_norm, {layer.q, layer.k, layer.v});
    rotator.FoldNorm(layer.mlp_norm, {layer.gate, layer.up});
    rotator.RotateReaders({layer.q, layer.k, layer.v, layer.gate, layer.up});
    rotator.RotateWriter(layer.o, layer.o_bias);
    rotator.RotateWriter(layer.down, layer.down_bias);
    if (!options.rotate_heads) continue;
    ASSIGN_OR_RETURN(const HadamardRotation heads, HadamardRotation::Create(config.head_dim, options.seed, i + 1));
    rotator.RotateHeads(layer, heads);
  }
  return result;
}

}  // namespace pith
