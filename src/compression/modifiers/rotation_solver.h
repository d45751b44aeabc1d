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
// Tied embeddings: the head takes the weights of the final norm and the embedding does not, so they are one matrix no longer, unless these
// weights are all 1. The caller passes a copy as the head and reads from the result whether it must be stored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/thread_pool.h"
#include "model/decoder_config.h"
#include "tensor/tensor.h"

namespace pith {

// Weights of one decoder layer, borrowed and changed in place. Weights are [out, in]; a bias that the model has not is empty. Biases of q,
// k, gate and up are not here: nothing changes them.
struct RotatableLayer {
  absl::Span<float> attention_norm, mlp_norm;  // [hidden]
  MatrixView<float> q;                         // [num_heads * head_dim, hidden]
  MatrixView<float> k, v;                      // [num_kv_heads * head_dim, hidden]
  MatrixView<float> o;                         // [hidden, num_heads * head_dim]
  MatrixView<float> gate, up;                  // [intermediate, hidden]
  MatrixView<float> down;                      // [hidden, intermediate]
  absl::Span<float> v_bias;                    // [num_kv_heads * head_dim]
  absl::Span<float> o_bias, down_bias;         // [hidden]
};

struct RotatableDecoder {
  MatrixView<float> embedding;   // [vocab, hidden]
  absl::Span<float> final_norm;  // [hidden]
  MatrixView<float> head;        // [vocab, hidden]; a copy of the embedding where these are tied
  std::vector<RotatableLayer> layers;
};

struct RotationOptions {
  uint64_t seed = 0;         // of the signs; R1 is stream 0, R2 of layer i stream i + 1
  bool rotate_heads = true;  // R2
};

struct RotationResult {
  bool tied_embeddings = false;  // whether embedding and head are still one matrix; never when they were two before
};

// Whether a decoder of this kind can be rotated. Errors: kUnimplemented for norms after attention or MLP (Gemma 3), whose weights act
// between a rotated output and the residual stream, and for sizes without a Hadamard matrix.
absl::Status CheckRotatable(const DecoderConfig& config, const RotationOptions& options);

// Norm weights become 1 (0 where the config adds one to them). All arithmetic is f64; every weight is rounded to f32 at most three times.
// Same bits for any number of threads. Errors, before anything is changed: those of CheckRotatable, kInvalidArgument for shapes that do
// not fit `config`.
absl::StatusOr<RotationResult> RotateDecoder(const DecoderConfig& config, const RotatableDecoder& weights, const RotationOptions& options,
                                             ThreadPool& pool);

}  // namespace pith
