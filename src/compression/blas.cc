#include "compression/blas.h"

#include <dlfcn.h>

#include <limits>

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
  // Fortran hands the lengths of strings over behind all arguments.
  void (*dpotrf)(const char* triangle, const lapack_int* n, double* a, const lapack_int* stride, lapack_int* info, size_t length);
  void (*dposv)(const char* triangle, const lapack_int* n, const lapack_int* columns, double* a, const lapack_int* stride, double* b,
                const lapack_int* stride_b, lapack_int* info, size_t length);

 private:
  OpenBlas() : handle_(dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) CheckFailed(__FILE__, __LINE__, dlerror());
    Find("cblas_sgemm", sgemm);
    Find("cblas_ssyrk", ssyrk);
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

bool FactorizeCholesky(MatrixView<double> matrix) {
  CHECK_EQ(matrix.rows, matrix.cols);
  const lapack_int n = ToBlasInt(matrix.rows), stride = Stride(matrix);
  lapack_int info = 0;
  OpenBlas::Get().dpotrf(&kLowerTriangle, &n, matrix.data, &stride, &info, 1);
  CHECK_GE(info, 0);
  return info == 0;
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
