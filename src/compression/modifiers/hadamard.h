// Orthogonal rotations by Hadamard matrices: they spread outliers over all channels, cost O(n log n) per vector and are their own
// documentation of the inverse (the transpose). Pure functions of matrices; docs/methods/rotation.md.
//
//   R = diag(signs) H / sqrt(n),   H = H_{2^k} (x) H_m,   n = 2^k m,   R R^T = I
// H_{2^k} is Sylvester's matrix (the fast Walsh-Hadamard transform) and H_m, for sizes that are no power of two, Paley's: of order q + 1
// for a prime q = 3 mod 4, or 2 (q + 1) for a prime q = 1 mod 4, computed from quadratic residues. m is the smallest order that fits:
// 12, 20, 28, 36, 44, 60, ...; up to 256. The signs come from a seed (a counter-based stream), so a rotation is a pure function of
// (size, seed, stream); without a seed they are all +1.
// Source: Paley 1933, "On orthogonal matrices"; rotations of weights: QuaRot (Ashkboos et al. 2024, arXiv 2404.00456), section 4.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/thread_pool.h"
#include "tensor/tensor.h"

namespace pith {

// H_m as m rows of +1 and -1, row-major: m = 1, or an order of Paley's constructions as above; empty for any other m.
std::vector<int8_t> PaleyHadamard(int64_t m);

class HadamardRotation {
 public:
  // Errors: kUnimplemented for a size without such a matrix (25, 18, ...), kInvalidArgument for a size below 1.
  static absl::StatusOr<HadamardRotation> Create(int64_t size, std::optional<uint64_t> seed = std::nullopt, uint64_t stream = 0);

  int64_t size() const { return size_; }
  int64_t paley_order() const { return order_; }  // m

  // x <- x R and x <- x R^T, with `size` values. Thread-safe.
  void Rotate(absl::Span<double> x) const;
  void RotateBack(absl::Span<double> x) const;

  // M <- M R: every row of [rows, size], in f64 and rounded once. A linear layer y = x W^T whose input is rotated to x R keeps its output
  // with W R. Same bits for any number of threads.
  void RotateRows(MatrixView<float> matrix, ThreadPool& pool) const;
  void RotateRowsBack(MatrixView<float> matrix, ThreadPool& pool) const;  // M <- M R^T
  // M <- R^T M: every column of [size, cols]. A linear layer whose output is to be y R gets R^T W.
  void RotateColumns(MatrixView<float> matrix, ThreadPool& pool) const;
  void RotateColumnsBack(MatrixView<float> matrix, ThreadPool& pool) const;  // M <- R M

 private:
  HadamardRotation() = default;
  void Butterflies(absl::Span<double> x) const;                // x <- x (H_{2^k} (x) I)
  void MixGroups(absl::Span<double> x, bool transpose) const;  // x <- x (I (x) H_m), or its transpose
  void ForRows(MatrixView<float> matrix, bool back, ThreadPool& pool) const;
  void ForColumns(MatrixView<float> matrix, bool back, ThreadPool& pool) const;

  int64_t size_ = 1, order_ = 1;
  std::vector<double> paley_, transposed_;  // [order, order]; empty for order 1
  std::vector<double> signs_;               // [size] +-1 / sqrt(size)
};

}  // namespace pith
