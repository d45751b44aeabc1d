// The second moments of a layer's input, H = (2/n) sum over n rows x of x x^T: the Hessian of the squared error of a linear layer's output
// with respect to a row of its weights, and the quadratic form that measures such errors without the rows.
// Source: Frantar et al. 2022 (arXiv 2210.17323), section 3.1.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/aligned_buffer.h"
#include "base/cpu_features.h"
#include "base/thread_pool.h"
#include "compression/modifiers/bf16_gram.h"
#include "tensor/tensor.h"

namespace pith {

// Collects H from a stream of rows. Blocks of kBlockRows rows are multiplied in f32, where arithmetic is fast and the rounding of a few
// thousand terms is far below the damping of any method, by BLAS or on the bf16 tile unit (bf16_gram.h); blocks are added in f64, because
// an f32 sum over a whole calibration set would lose what late rows add. Rows wait until a block is full, so the bits depend neither on how
// the rows were cut into calls nor on the number of threads: each takes tiles of the lower triangle. They depend on `isa` and, without a
// tile unit, on the CPU. Not thread-safe. Takes 4 in^2 bytes, and 4 kBlockRows in for rows that wait, thrice that with the tile unit.
class HessianAccumulator {
 public:
  static constexpr int64_t kBlockRows = 2048;

  // in >= 1. `isa` is one that this CPU has: SelectIsa().
  HessianAccumulator(int64_t in, Isa isa);

  // Rows [num_rows, in] of f32. Throws std::bad_alloc.
  void Add(MatrixView<const float> rows, ThreadPool& pool);

  // The rows of `other` behind those of this one, which closes the open block of both: the sum in another order of rows.
  void Merge(HessianAccumulator& other, ThreadPool& pool);

  int64_t in() const { return in_; }
  int64_t num_rows() const { return num_rows_; }

  // [in, in] f32, symmetric. Closes the open block; rows may follow. Errors: kFailedPrecondition without rows; kDataLoss naming the first
  // column with a value that is not finite (or whose squares overflow).
  absl::StatusOr<Tensor> Hessian(ThreadPool& pool);

 private:
  struct Tile {
    int64_t i, j;  // row and column of tiles
    int64_t row_begin, rows, col_begin, cols;
    double* sum;  // [rows, tile_]
  };

  int64_t num_tiles() const { return tiles_per_side_ * (tiles_per_side_ + 1) / 2; }
  Tile TileAt(int64_t index) const;
  void AddBlock(MatrixView<const float> rows, ThreadPool& pool);
  void AddToTile(const Tile& tile, MatrixView<const float> rows, AlignedBuffer& scratch) const;
  void CloseBlock(ThreadPool& pool);

  int64_t in_;
  int64_t num_rows_ = 0;
  int64_t tiles_per_side_, tile_;
  std::unique_ptr<Bf16Gram> gram_;  // null: BLAS
  mutable AlignedBuffer sums_;      // [num_tiles, tile_, tile_] f64: the lower triangle of sum x x^T by tiles
  AlignedBuffer open_block_;        // [kBlockRows, in] f32
  int64_t open_rows_ = 0;
  std::vector<AlignedBuffer> scratch_;  // per thread
};

// e H e^T of every row e of a matrix [num_rows, in] of errors: with H as above twice the mean squared error of that output.
//   hessian     [in, in] f32, symmetric
//   fill_error  writes row o of the errors; called once per row, from any thread
// Same bits for any number of threads. O(num_rows in^2) time. Rounding is about 1e-6 of the result; tiny negative results become 0.
std::vector<double> QuadraticForms(int64_t num_rows, MatrixView<const float> hessian,
                                   absl::FunctionRef<void(int64_t, absl::Span<float>)> fill_error, ThreadPool& pool);

// `value` [in, in] symmetric and finite with a diagonal >= 0? Symmetry is taken on trust. Errors: kInvalidArgument for another shape than
// [in, in], kDataLoss naming `name` and the first entry that is not finite or the first negative one of the diagonal.
absl::Status CheckHessian(absl::string_view name, MatrixView<const float> value, int64_t in);

}  // namespace pith
