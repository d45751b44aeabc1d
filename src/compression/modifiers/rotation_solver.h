// Rotates the residual stream of a decoder, and the values inside each attention head, by Hadamard matrices that are multiplied into the
// weights: the model computes the same, at no cost when it runs, and its weights and activations have no outlier channels. A pure function
// of matrices; docs/methods/rotation.md.
//
//   weights of an RMSNorm g go into the layers it feeds:  W <- W diag(g), g <- 1     (a norm without weights commutes with a rotation)
//   R1 [hidden, hidden]:     embedding E <- E R1;  q, k, v, gate, up, head W <- W R1;  o, down W <- R1^T W, bias <- bias R1
//   R2 [head_dim, head_dim] per layer:  v, each head: W <- R2^T W, bias <- bias R2;  o, each head's columns: W <- W R2
// Source: QuaRot (Ashkboos et al. 2024, arXiv 2404.00456), sections 3 and 4; the names are SpinQuant's (Liu et al. 2024, arXiv 2405.16406).
// Deviations: R2 is another one in each layer, as all are drawn from a seed; embeddings are not centered (RMSNorm needs no centering);
// no rotation at run time (their R3, R4).
//
// Tied embeddings: the head takes the weights of the final norm and the embedding does not, so with R1 they are one matrix no longer,
// unless these weights are all 1.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/thread_pool.h"
#include "compression/modifiers/hadamard.h"
#include "model/decoder_config.h"
#include "tensor/tensor.h"

namespace pith {

struct RotationOptions {
  bool residual = true;      // R1
  bool heads = true;         // R2
  bool random_signs = true;  // else the matrices are Hadamard's as they are, the same in each layer
  uint64_t seed = 0;         // of the signs; R1 is stream 0, R2 of layer i stream i + 1

  friend bool operator==(const RotationOptions&, const RotationOptions&) = default;
};

// What a matrix of a decoder does, which decides what it is multiplied by. Weights are [out, in].
enum class DecoderPart {
  kEmbedding,        // [vocab, hidden]: W R1
  kReader,           // q, k, gate, up, head [.., hidden]: W diag(g) R1
  kValue,            // v [num_kv_heads * head_dim, hidden]: R2^T W diag(g) R1, bias R2
  kAttentionOutput,  // o [hidden, num_heads * head_dim]: R1^T W R2, bias R1
  kMlpOutput,        // down [hidden, ..]: R1^T W, bias R1
};

// Thread-safe.
class DecoderRotation {
 public:
  // Errors: kUnimplemented for norms after attention or MLP (Gemma 3), whose weights act between a rotated output and the residual stream
  // (with R1), and for sizes without a Hadamard matrix.
  static absl::StatusOr<DecoderRotation> Create(const DecoderConfig& config, const RotationOptions& options);

  const RotationOptions& options() const { return options_; }

  // `matrix` of `layer` (0 outside the layers) in place. `norm` [hidden]: the weights, as stored, of the norm that a kReader or kValue
  // reads from; folded in with R1, and unused otherwise. Arithmetic is f64; every weight is rounded to f32 at most three times. Same bits
  // for any number of threads. Errors, before anything is changed: kInvalidArgument for a shape that does not fit the decoder.
  absl::Status RotateMatrix(DecoderPart part, int64_t layer, absl::Span<const float> norm, MatrixView<float> matrix,
                            ThreadPool& pool) const;
  // The bias [out] of such a matrix in place; those of embedding and readers stay as they are. Errors as above.
  absl::Status RotateBias(DecoderPart part, int64_t layer, absl::Span<float> bias) const;

  // The stored weight of a norm that multiplies by one: what folding leaves.
  float unit_norm_weight() const { return 1 - norm_offset_; }

 private:
  DecoderRotation(const DecoderConfig& config, const RotationOptions& options);
  HadamardRotation HeadRotation(int64_t layer) const;
  absl::Status CheckShape(DecoderPart part, absl::Span<const float> norm, const MatrixView<float>& matrix) const;
  void FoldNorm(absl::Span<const float> norm, MatrixView<float> matrix, ThreadPool& pool) const;

  RotationOptions options_;
  int64_t hidden_, head_dim_, num_heads_, num_kv_heads_;
  float norm_offset_;                         // what the config adds to norm weights
  std::optional<HadamardRotation> residual_;  // R1; nullopt: none
};

}  // namespace pith
