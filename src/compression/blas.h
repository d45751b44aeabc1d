// Dense linear algebra of the solvers: OpenBLAS on the calling thread alone. Work is shared out over a pool by tiles of the output that
// depend on the shapes only, never by sums, so results are the same bits for any number of threads (not for any CPU: OpenBLAS has
// kernels per instruction set). All functions are thread-safe. Dimensions and strides are below 2^31; matrices are row-major.
#pragma once

#include "absl/types/span.h"
#include "base/thread_pool.h"
#include "tensor/tensor.h"

namespace pith {

enum class Transpose { kNo, kYes };

// out = alpha * op(a) * op(b) + beta * out, with op the matrix or its transpose. With beta = 0 the old content of `out` is not read.
void Multiply(float alpha, MatrixView<const float> a, Transpose transpose_a, MatrixView<const float> b, Transpose transpose_b, float beta,
              MatrixView<float> out);

// Lower triangle of rows^T * rows; the rest of `out` [cols, cols] is left alone.
void MultiplyGram(MatrixView<const float> rows, MatrixView<float> out);

// The lower triangle of a symmetric matrix (the rest is left alone) replaced by L with L L^T = matrix, by blocks of 256 columns on all
// threads of `pool`; same bits for any number. False when a pivot is not positive: the content is unspecified then. Entries are finite.
bool FactorizeCholesky(MatrixView<double> matrix, ThreadPool& pool);

// Replaces `b` by the solution of matrix * x = b; reads the lower triangle of `matrix` and destroys it. False as above.
bool SolvePositiveDefinite(MatrixView<double> matrix, absl::Span<double> b);

}  // namespace pith
