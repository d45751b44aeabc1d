#include "compression/blas.h"

#include <limits>

#include <cblas.h>
#include <lapack.h>

#include "base/check.h"

namespace pith {
namespace {

// OpenBLAS would start as many threads as there are CPUs for every product.
void UseOneThread() {
  static const bool done = (openblas_set_num_threads(1), true);
  (void)done;
}

blasint ToBlasInt(int64_t value) {
  CHECK_GE(value, 0);
  CHECK_LE(value, std::numeric_limits<blasint>::max());
  return static_cast<blasint>(value);
}

// Leading dimensions are at least 1, also of an empty matrix.
template <typename T> blasint Stride(MatrixView<T> matrix) { return ToBlasInt(matrix.stride > 0 ? matrix.stride : 1); }

CBLAS_TRANSPOSE ToCblas(Transpose transpose) { return transpose == Transpose::kYes ? CblasTrans : CblasNoTrans; }

// LAPACK's columns are our rows, so its upper triangle is our lower one.
constexpr char kLowerTriangle = 'U';

}  // namespace

void Multiply(float alpha, MatrixView<const float> a, Transpose transpose_a, MatrixView<const float> b, Transpose transpose_b, float beta,
              MatrixView<float> out) {
  UseOneThread();
  const int64_t inner = transpose_a == Transpose::kYes ? a.rows : a.cols;
  CHECK_EQ(transpose_a == Transpose::kYes ? a.cols : a.rows, out.rows);
  CHECK_EQ(transpose_b == Transpose::kYes ? b.rows : b.cols, out.cols);
  CHECK_EQ(transpose_b == Transpose::kYes ? b.cols : b.rows, inner);
  cblas_sgemm(CblasRowMajor, ToCblas(transpose_a), ToCblas(transpose_b), ToBlasInt(out.rows), ToBlasInt(out.cols), ToBlasInt(inner), alpha,
              a.data, Stride(a), b.data, Stride(b), beta, out.data, Stride(out));
}

void MultiplyGram(MatrixView<const float> rows, MatrixView<float> out) {
  UseOneThread();
  CHECK(out.rows == rows.cols && out.cols == rows.cols);
  cblas_ssyrk(CblasRowMajor, CblasLower, CblasTrans, ToBlasInt(rows.cols), ToBlasInt(rows.rows), 1.0f, rows.data, Stride(rows), 0.0f,
              out.data, Stride(out));
}

bool FactorizeCholesky(MatrixView<double> matrix) {
  UseOneThread();
  CHECK_EQ(matrix.rows, matrix.cols);
  const lapack_int n = ToBlasInt(matrix.rows), stride = Stride(matrix);
  lapack_int info = 0;
  LAPACK_dpotrf(&kLowerTriangle, &n, matrix.data, &stride, &info);
  CHECK_GE(info, 0);
  return info == 0;
}

bool SolvePositiveDefinite(MatrixView<double> matrix, absl::Span<double> b) {
  UseOneThread();
  CHECK(matrix.rows == matrix.cols && static_cast<int64_t>(b.size()) == matrix.rows);
  const lapack_int n = ToBlasInt(matrix.rows), stride = Stride(matrix), one = 1;
  lapack_int info = 0;
  LAPACK_dposv(&kLowerTriangle, &n, &one, matrix.data, &stride, b.data(), &n, &info);
  CHECK_GE(info, 0);
  return info == 0;
}

}  // namespace pith
