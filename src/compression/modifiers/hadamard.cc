#include "compression/modifiers/hadamard.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/random.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr int64_t kMaxPaleyOrder = 256;
constexpr int64_t kColumnsAtOnce = 16;  // a cache line of floats

bool IsPrime(int64_t q) {
  for (int64_t d = 2; d * d <= q; ++d) {
    if (q % d == 0) return false;
  }
  return q > 1;
}

// chi[x]: 0 for 0, +1 for squares modulo q, else -1.
std::vector<int8_t> QuadraticCharacter(int64_t q) {
  std::vector<int8_t> chi(static_cast<size_t>(q), -1);
  chi[0] = 0;
  for (int64_t x = 1; x < q; ++x) chi[static_cast<size_t>(x * x % q)] = 1;
  return chi;
}

// The bordered matrix [0 1; b Q] of order q + 1 with Q_ij = chi(i - j) and b = chi(-1): symmetric for q = 1 mod 4, else antisymmetric.
std::vector<int8_t> Conference(int64_t q) {
  const std::vector<int8_t> chi = QuadraticCharacter(q);
  const int64_t m = q + 1;
  std::vector<int8_t> matrix(static_cast<size_t>(m * m));
  for (int64_t i = 1; i < m; ++i) {
    matrix[static_cast<size_t>(i)] = 1;
    matrix[static_cast<size_t>(i * m)] = q % 4 == 1 ? 1 : -1;
    for (int64_t j = 1; j < m; ++j) matrix[static_cast<size_t>(i * m + j)] = chi[static_cast<size_t>((i - j + q) % q)];
  }
  return matrix;
}

}  // namespace

std::vector<int8_t> PaleyHadamard(int64_t m) {
  if (m == 1) return {1};
  if (m < 4 || m % 4 != 0 || m > kMaxPaleyOrder) return {};
  std::vector<int8_t> result(static_cast<size_t>(m * m));
  if (IsPrime(m - 1)) {  // I + C
    result = Conference(m - 1);
    for (int64_t i = 0; i < m; ++i) result[static_cast<size_t>(i * m + i)] = 1;
    return result;
  }
  const int64_t q = m / 2 - 1;
  if (q % 4 != 1 || !IsPrime(q)) return {};
  // Every entry c of C becomes c [1 1; 1 -1], and every 0 on its diagonal [1 -1; -1 -1].
  const std::vector<int8_t> conference = Conference(q);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < m; ++j) {
      const int8_t entry = conference[static_cast<size_t>(i / 2 * (q + 1) + j / 2)];
      const int corner = i / 2 == j / 2 ? (i % 2 == 0 && j % 2 == 0 ? 1 : -1) : entry * (i % 2 == 1 && j % 2 == 1 ? -1 : 1);
      result[static_cast<size_t>(i * m + j)] = static_cast<int8_t>(corner);
    }
  }
  return result;
}

absl::StatusOr<HadamardRotation> HadamardRotation::Create(int64_t size, std::optional<uint64_t> seed, uint64_t stream) {
  if (size < 1) return UsageError("rotation: expected a size of at least 1, found ", size);
  HadamardRotation rotation;
  rotation.size_ = size;
  int64_t order = size;
  while (order % 2 == 0) order /= 2;
  if (order > 1) {
    order *= 4;
    std::vector<int8_t> paley;
    while (order <= kMaxPaleyOrder && size % order == 0 && paley.empty()) {
      paley = PaleyHadamard(order);
      if (paley.empty()) order *= 2;
    }
    if (paley.empty()) {
      return NotSupportedError("rotation: expected a size of 2^k or 2^k times 12, 20, 28, 36, ..., found ", size,
                               ", for which no Hadamard matrix is known here");
    }
    rotation.paley_.assign(paley.begin(), paley.end());
    rotation.transposed_.resize(paley.size());
    for (int64_t i = 0; i < order * order; ++i) rotation.transposed_[i % order * order + i / order] = paley[i];
  }
  rotation.order_ = order;
  const double scale = 1 / std::sqrt(static_cast<double>(size));
  for (int64_t i = 0; i < size; ++i) {
    const bool negative = seed.has_value() && UniformOpen(*seed, stream, static_cast<uint64_t>(i)) < 0.5;
    rotation.signs_.push_back(negative ? -scale : scale);
  }
  return rotation;
}

void HadamardRotation::Butterflies(absl::Span<double> x) const {
  for (int64_t half = order_; half < size_; half *= 2) {
    for (int64_t begin = 0; begin < size_; begin += 2 * half) {
      double* low = x.data() + begin;
      double* high = low + half;
      for (int64_t i = 0; i < half; ++i) {
        const double sum = low[i] + high[i], difference = low[i] - high[i];
        low[i] = sum;
        high[i] = difference;
      }
    }
  }
}

void HadamardRotation::MixGroups(absl::Span<double> x, bool transpose) const {
  if (order_ == 1) return;
  const double* const matrix = (transpose ? transposed_ : paley_).data();
  double mixed[kMaxPaleyOrder];
  for (int64_t begin = 0; begin < size_; begin += order_) {
    double* group = x.data() + begin;
    std::fill_n(mixed, order_, 0.0);
    for (int64_t i = 0; i < order_; ++i) {
      const double* signs = matrix + i * order_;
      for (int64_t j = 0; j < order_; ++j) mixed[j] += group[i] * signs[j];
    }
    std::copy_n(mixed, order_, group);
  }
}

void HadamardRotation::Rotate(absl::Span<double> x) const {
  DCHECK(static_cast<int64_t>(x.size()) == size_);
  for (int64_t i = 0; i < size_; ++i) x[i] *= signs_[i];
  Butterflies(x);
  MixGroups(x, /*transpose=*/false);
}

void HadamardRotation::RotateBack(absl::Span<double> x) const {
  DCHECK(static_cast<int64_t>(x.size()) == size_);
  MixGroups(x, /*transpose=*/true);
  Butterflies(x);
  for (int64_t i = 0; i < size_; ++i) x[i] *= signs_[i];
}

void HadamardRotation::ForRows(MatrixView<float> matrix, bool back, ThreadPool& pool) const {
  CHECK_EQ(matrix.cols, size_);
  pool.ParallelFor(matrix.rows, 1, [&](int64_t begin, int64_t end, int) {
    std::vector<double> x(static_cast<size_t>(size_));
    for (int64_t r = begin; r < end; ++r) {
      float* row = matrix.row(r);
      std::copy_n(row, size_, x.begin());
      back ? RotateBack(absl::MakeSpan(x)) : Rotate(absl::MakeSpan(x));
      for (int64_t i = 0; i < size_; ++i) row[i] = static_cast<float>(x[i]);
    }
  });
}

void HadamardRotation::ForColumns(MatrixView<float> matrix, bool back, ThreadPool& pool) const {
  CHECK_EQ(matrix.rows, size_);
  const int64_t num_blocks = (matrix.cols + kColumnsAtOnce - 1) / kColumnsAtOnce;
  pool.ParallelFor(num_blocks, 1, [&](int64_t begin, int64_t end, int) {
    std::vector<double> x(static_cast<size_t>(size_ * kColumnsAtOnce));  // [columns, size]
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kColumnsAtOnce, count = std::min(kColumnsAtOnce, matrix.cols - first);
      for (int64_t i = 0; i < size_; ++i) {
        for (int64_t c = 0; c < count; ++c) x[c * size_ + i] = matrix.row(i)[first + c];
      }
      for (int64_t c = 0; c < count; ++c) {
        const absl::Span<double> column(x.data() + c * size_, static_cast<size_t>(size_));
        back ? RotateBack(column) : Rotate(column);
      }
      for (int64_t i = 0; i < size_; ++i) {
        for (int64_t c = 0; c < count; ++c) matrix.row(i)[first + c] = static_cast<float>(x[c * size_ + i]);
      }
    }
  });
}

void HadamardRotation::RotateRows(MatrixView<float> matrix, ThreadPool& pool) const { ForRows(matrix, /*back=*/false, pool); }
void HadamardRotation::RotateRowsBack(MatrixView<float> matrix, ThreadPool& pool) const { ForRows(matrix, /*back=*/true, pool); }
void HadamardRotation::RotateColumns(MatrixView<float> matrix, ThreadPool& pool) const { ForColumns(matrix, /*back=*/false, pool); }
void HadamardRotation::RotateColumnsBack(MatrixView<float> matrix, ThreadPool& pool) const { ForColumns(matrix, /*back=*/true, pool); }

}  // namespace pith
