// e G e^T of many rows e under one symmetric matrix G: what a search measures its candidates by. On the bf16 tile unit numbers are split
// into bf16 parts, as for the Hessian (bf16_gram.h), which is several times faster than f32; elsewhere BLAS does it (QuadraticForms).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/aligned_buffer.h"
#include "base/cpu_features.h"
#include "base/thread_pool.h"
#include "kernels/kernel_entry.h"
#include "tensor/tensor.h"

namespace pith {

class QuadraticFormMeter {
 public:
  // `gram` [in, in] f32, symmetric, finite; borrowed. `isa` is one that this CPU has. 4 in^2 bytes with a tile unit,
  // 6 in^2 while it is made.
  QuadraticFormMeter(MatrixView<const float> gram, Isa isa, ThreadPool& pool);

  // Whether the tile unit does it.
  bool uses_tiles() const { return kernel_ != nullptr; }

  // The form of each row; fill_error(o, row) writes row o, once, from any thread. Same bits for any number of threads. The rounding is that
  // of QuadraticForms or, by tiles, at most 3 * 2^-16 of sum |e_i G_ij e_j|; tiny negative results become 0. O(num_rows in^2) time, 12 in
  // bytes for each of 256 rows per thread. Not reentrant: `pool` is busy.
  std::vector<double> Measure(int64_t num_rows, absl::FunctionRef<void(int64_t, absl::Span<float>)> fill_error, ThreadPool& pool) const;

 private:
  struct Rows;  // of one job, with room for their parts and products

  void Multiply(const std::vector<uint16_t>& activation, const AlignedBuffer& weight, bool accumulate, int64_t panel, Rows& rows) const;
  void AddForms(Rows& rows, absl::Span<double> forms) const;

  MatrixView<const float> gram_;
  const GemmKernelEntry* kernel_ = nullptr;  // null: BLAS
  GemmProblem problem_;
  AlignedBuffer high_, low_;  // prepacked parts of `gram`
};

}  // namespace pith
