#include "compression/blas.h"

#include <dlfcn.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <cblas.h>
#include <lapack.h>

#include "base/check.h"

namespace pith {
namespace {

// OpenBLAS starts threads and takes tens of megabytes when it is loaded, which serving has no use for: it is loaded by the first call.
class OpenBlas {
 public:
  static const OpenBlas& Get() {
    static const OpenBlas* const library = new OpenBlas;
    return *library;
  }

  decltype(&cblas_sgemm) sgemm;
  decltype(&cblas_ssyrk) ssyrk;
  decltype(&cblas_dgemm) dgemm;
  decltype(&cblas_dsyrk) dsyrk;
  decltype(&cblas_dtrsm) dtrsm;
  // Fortran hands the lengths of strings over behind all arguments.
  void (*dpotrf)(const char* triangle, const lapack_int* n, double* a, const lapack_int* stride, lapack_int* info, size_t length);
  void (*dposv)(const char* triangle, const lapack_int* n, const lapack_int* columns, double* a, const lapack_int* stride, double* b,
                const lapack_int* stride_b, lapack_int* info, size_t length);

 private:
  OpenBlas() : handle_(dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) CheckFailed(__FILE__, __LINE__, dlerror());
    Find("cblas_sgemm", sgemm);
    Find("cblas_ssyrk", ssyrk);
    Find("cblas_dgemm", dgemm);
    Find("cblas_dsyrk", dsyrk);
    Find("cblas_dtrsm", dtrsm);
    Find("dpotrf_", dpotrf);
    Find("dposv_", dposv);
    decltype(&openblas_set_num_threads) set_num_threads;
    Find("openblas_set_num_threads", set_num_threads);
    set_num_threads(1);  // it would use as many as there are CPUs for every product
  }
  template <typename Function> void Find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle_, name));
    if (function == nullptr) CheckFailed(__FILE__, __LINE__, dlerror());
  }

  void* handle_;
};

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
  const int64_t inner = transpose_a == Transpose::kYes ? a.rows : a.cols;
  CHECK_EQ(transpose_a == Transpose::kYes ? a.cols : a.rows, out.rows);
  CHECK_EQ(transpose_b == Transpose::kYes ? b.rows : b.cols, out.cols);
  CHECK_EQ(transpose_b == Transpose::kYes ? b.cols : b.rows, inner);
  OpenBlas::Get().sgemm(CblasRowMajor, ToCblas(transpose_a), ToCblas(transpose_b), ToBlasInt(out.rows), ToBlasInt(out.cols),
                        ToBlasInt(inner), alpha, a.data, Stride(a), b.data, Stride(b), beta, out.data, Stride(out));
}

void MultiplyGram(MatrixView<const float> rows, MatrixView<float> out) {
  CHECK(out.rows == rows.cols && out.cols == rows.cols);
  OpenBlas::Get().ssyrk(CblasRowMajor, CblasLower, CblasTrans, ToBlasInt(rows.cols), ToBlasInt(rows.rows), 1.0f, rows.data, Stride(rows),
                        0.0f, out.data, Stride(out));
}

namespace {

constexpr int64_t kCholeskyBlock = 256;

// The lower triangle of a symmetric matrix, cut into square blocks.
class BlockedCholesky {
 public:
  explicit BlockedCholesky(MatrixView<double> matrix) : matrix_(matrix), stride_(Stride(matrix)) {}

  int64_t num_blocks() const { return (matrix_.rows + kCholeskyBlock - 1) / kCholeskyBlock; }

  // Block k of the diagonal by its factor.
  bool Factorize(int64_t k) const {
    const lapack_int n = Size(k);
    lapack_int info = 0;
    OpenBlas::Get().dpotrf(&kLowerTriangle, &n, Block(k, k), &stride_, &info, 1);
    CHECK_GE(info, 0);
    return info == 0;
  }
  // Block i below it: X with X L^T = block.
  void Solve(int64_t i, int64_t k) const {
    OpenBlas::Get().dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, Size(i), Size(k), 1.0, Block(k, k), stride_,
                          Block(i, k), stride_);
  }
  // Block (i, j) less what column k of blocks makes of it.
  void Subtract(int64_t i, int64_t j, int64_t k) const {
    if (i == j) {
      OpenBlas::Get().dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, Size(i), Size(k), -1.0, Block(i, k), stride_, 1.0, Block(i, i),
                            stride_);
    } else {
      OpenBlas::Get().dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, Size(i), Size(j), Size(k), -1.0, Block(i, k), stride_, Block(j, k),
                            stride_, 1.0, Block(i, j), stride_);
    }
  }

 private:
  double* Block(int64_t i, int64_t j) const { return matrix_.row(i * kCholeskyBlock) + j * kCholeskyBlock; }
  blasint Size(int64_t i) const { return ToBlasInt(std::min(kCholeskyBlock, matrix_.rows - i * kCholeskyBlock)); }

  MatrixView<double> matrix_;
  blasint stride_;
};

}  // namespace

bool FactorizeCholesky(MatrixView<double> matrix, ThreadPool& pool) {
  CHECK_EQ(matrix.rows, matrix.cols);
  const BlockedCholesky cholesky(matrix);
  const int64_t blocks = cholesky.num_blocks();
  for (int64_t k = 0; k < blocks; ++k) {
    if (!cholesky.Factorize(k)) return false;
    pool.ParallelForDynamic(blocks - k - 1, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) cholesky.Solve(k + 1 + i, k);
    });
    std::vector<std::pair<int64_t, int64_t>> rest;
    for (int64_t i = k + 1; i < blocks; ++i) {
      for (int64_t j = k + 1; j <= i; ++j) rest.emplace_back(i, j);
    }
    pool.ParallelForDynamic(static_cast<int64_t>(rest.size()), 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t b = begin; b < end; ++b) cholesky.Subtract(rest[b].first, rest[b].second, k);
    });
  }
  return true;
}

bool SolvePositiveDefinite(MatrixView<double> matrix, absl::Span<double> b) {
  CHECK(matrix.rows == matrix.cols && static_cast<int64_t>(b.size()) == matrix.rows);
  const lapack_int n = ToBlasInt(matrix.rows), stride = Stride(matrix), one = 1;
  lapack_int info = 0;
  OpenBlas::Get().dposv(&kLowerTriangle, &n, &one, matrix.data, &stride, b.data(), &n, &info, 1);
  CHECK_GE(info, 0);
  return info == 0;
}

}  // namespace pith
