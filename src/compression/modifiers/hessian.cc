#include "compression/modifiers/hessian.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/status.h"
#include "compression/blas.h"
#include "quantization/qparams.h"

namespace pith {
namespace {

constexpr int64_t kAlignment = 16;  // of tiles, in elements

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Large tiles multiply faster, small ones can be shared out evenly.
int64_t LargestTile(int64_t in) { return in >= 2048 ? 512 : 256; }

// sum += addend; `count` is a multiple of kAlignment.
void AddTo(double* sum, const float* addend, int64_t count) {
  for (int64_t i = 0; i < count; i += kAlignment) {
    for (int64_t j = i; j < i + kAlignment; ++j) sum[j] += static_cast<double>(addend[j]);
  }
}

}  // namespace

HessianAccumulator::HessianAccumulator(int64_t in, Isa isa) : in_(in) {
  CHECK_GE(in, 1);
  const int64_t sides = CeilDiv(in, LargestTile(in));
  tile_ = CeilDiv(CeilDiv(in, sides), kAlignment) * kAlignment;
  tiles_per_side_ = CeilDiv(in, tile_);
  gram_ = Bf16Gram::Make(in, tile_, kBlockRows, isa);
  sums_ = AlignedBuffer(static_cast<size_t>(num_tiles() * tile_ * tile_) * sizeof(double));
}

HessianAccumulator::Tile HessianAccumulator::TileAt(int64_t index) const {
  int64_t i = 0;
  while ((i + 1) * (i + 2) / 2 <= index) ++i;
  const int64_t j = index - i * (i + 1) / 2;
  Tile tile{.i = i, .j = j, .row_begin = i * tile_, .col_begin = j * tile_};
  tile.rows = std::min(tile_, in_ - tile.row_begin);
  tile.cols = std::min(tile_, in_ - tile.col_begin);
  tile.sum = reinterpret_cast<double*>(sums_.data()) + index * tile_ * tile_;
  return tile;
}

void HessianAccumulator::AddToTile(const Tile& tile, MatrixView<const float> rows, AlignedBuffer& scratch) const {
  scratch.Reserve(static_cast<size_t>(tile_ * tile_) * sizeof(float));
  const MatrixView<float> product(reinterpret_cast<float*>(scratch.data()), tile.rows, tile.cols, tile_);
  const MatrixView<const float> left(rows.data + tile.row_begin, rows.rows, tile.rows, rows.stride);
  if (gram_ != nullptr) {
    gram_->MultiplyTile(tile.i, tile.j, product);
  } else if (tile.i == tile.j) {
    MultiplyGram(left, product);
  } else {
    const MatrixView<const float> right(rows.data + tile.col_begin, rows.rows, tile.cols, rows.stride);
    Multiply(1.0f, left, Transpose::kYes, right, Transpose::kNo, 0.0f, product);
  }
  // Above the diagonal and behind `cols` lies what nobody reads.
  AddTo(tile.sum, product.data, tile.rows * tile_);
}

void HessianAccumulator::AddBlock(MatrixView<const float> rows, ThreadPool& pool) {
  if (gram_ != nullptr) gram_->Load(rows, pool);
  scratch_.resize(std::max(scratch_.size(), static_cast<size_t>(pool.num_threads())));
  pool.ParallelForDynamic(num_tiles(), 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t index = begin; index < end; ++index) AddToTile(TileAt(index), rows, scratch_[static_cast<size_t>(thread)]);
  });
}

void HessianAccumulator::CloseBlock(ThreadPool& pool) {
  if (open_rows_ == 0) return;
  AddBlock({reinterpret_cast<const float*>(open_block_.data()), open_rows_, in_}, pool);
  open_rows_ = 0;
}

void HessianAccumulator::Add(MatrixView<const float> rows, ThreadPool& pool) {
  CHECK_EQ(rows.cols, in_);
  num_rows_ += rows.rows;
  for (int64_t r = 0; r < rows.rows;) {
    const int64_t count = std::min(rows.rows - r, kBlockRows - open_rows_);
    if (count == kBlockRows) {  // nothing waits
      AddBlock({rows.row(r), count, in_, rows.stride}, pool);
    } else {
      open_block_.Reserve(static_cast<size_t>(kBlockRows * in_) * sizeof(float));
      float* open = reinterpret_cast<float*>(open_block_.data()) + open_rows_ * in_;
      for (int64_t i = 0; i < count; ++i) std::memcpy(open + i * in_, rows.row(r + i), static_cast<size_t>(in_) * sizeof(float));
      open_rows_ += count;
      if (open_rows_ == kBlockRows) CloseBlock(pool);
    }
    r += count;
  }
}

void HessianAccumulator::Merge(HessianAccumulator& other, ThreadPool& pool) {
  CHECK_EQ(other.in_, in_);
  CloseBlock(pool);
  other.CloseBlock(pool);
  const double* addend = reinterpret_cast<const double*>(other.sums_.data());
  double* sum = reinterpret_cast<double*>(sums_.data());
  pool.ParallelFor(num_tiles() * tile_ * tile_, kAlignment, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) sum[i] += addend[i];
  });
  num_rows_ += other.num_rows_;
}

absl::StatusOr<Tensor> HessianAccumulator::Hessian(ThreadPool& pool) {
  if (num_rows_ == 0) return RefusedError("hessian: expected calibration rows of ", in_, " columns, found none");
  CloseBlock(pool);
  const double factor = 2.0 / static_cast<double>(num_rows_);
  Tensor hessian(DType::kF32, {in_, in_});
  float* out = hessian.as<float>().data();
  pool.ParallelForDynamic(num_tiles(), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t index = begin; index < end; ++index) {
      const Tile tile = TileAt(index);
      for (int64_t r = 0; r < tile.rows; ++r) {
        const int64_t row = tile.row_begin + r, cols = std::min(tile.cols, row - tile.col_begin + 1);
        for (int64_t c = 0; c < cols; ++c) {
          const float value = static_cast<float>(tile.sum[r * tile_ + c] * factor);
          out[row * in_ + tile.col_begin + c] = value;
          out[(tile.col_begin + c) * in_ + row] = value;
        }
      }
    }
  });
  for (int64_t i = 0; i < in_; ++i) {
    // x * x is finite for finite x of any sane size, and a NaN or infinity stays one in the sum.
    if (!std::isfinite(out[i * in_ + i])) {
      return BadFileError("calibration rows, column ", i, ": expected finite values, found a sum of squares of ", out[i * in_ + i]);
    }
  }
  return hessian;
}

namespace {

constexpr int64_t kFormRows = 64;   // rows of one job
constexpr int64_t kFormCols = 256;  // columns of one product

double Dot(const float* a, const float* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// e H e^T of a few rows: H is symmetric, so only its blocks on and below the diagonal are multiplied, and those below count twice.
void AddForms(MatrixView<const float> errors, MatrixView<const float> hessian, MatrixView<float> product, absl::Span<double> forms) {
  for (int64_t begin = 0; begin < hessian.cols; begin += kFormCols) {
    const int64_t cols = std::min(kFormCols, hessian.cols - begin), end = begin + cols, below = hessian.cols - end;
    const MatrixView<float> out(product.data, errors.rows, cols, kFormCols);
    const MatrixView<const float> diagonal(hessian.row(begin) + begin, cols, cols, hessian.stride);
    const MatrixView<const float> left(errors.data + begin, errors.rows, cols, errors.stride);
    Multiply(1.0f, left, Transpose::kNo, diagonal, Transpose::kNo, 0.0f, out);
    if (below > 0) {
      Multiply(2.0f, {errors.data + end, errors.rows, below, errors.stride}, Transpose::kNo,
               {hessian.row(end) + begin, below, cols, hessian.stride}, Transpose::kNo, 1.0f, out);
    }
    for (int64_t r = 0; r < errors.rows; ++r) forms[r] += Dot(left.row(r), out.row(r), cols);
  }
}

}  // namespace

std::vector<double> QuadraticForms(int64_t num_rows, MatrixView<const float> hessian,
                                   absl::FunctionRef<void(int64_t, absl::Span<float>)> fill_error, ThreadPool& pool) {
  CHECK_EQ(hessian.rows, hessian.cols);
  const int64_t in = hessian.cols;
  std::vector<double> forms(static_cast<size_t>(num_rows), 0.0);
  pool.ParallelForDynamic(CeilDiv(num_rows, kFormRows), 1, [&](int64_t first, int64_t last, int) {
    Tensor errors(DType::kF32, {kFormRows, in}), product(DType::kF32, {kFormRows, kFormCols});
    for (int64_t job = first; job < last; ++job) {
      const int64_t begin = job * kFormRows, rows = std::min(kFormRows, num_rows - begin);
      for (int64_t r = 0; r < rows; ++r)
        fill_error(begin + r, errors.as<float>().subspan(static_cast<size_t>(r * in), static_cast<size_t>(in)));
      AddForms({errors.as<float>().data(), rows, in}, hessian, {product.as<float>().data(), rows, kFormCols},
               absl::MakeSpan(forms).subspan(static_cast<size_t>(begin), static_cast<size_t>(rows)));
    }
  });
  for (double& form : forms) form = std::max(form, 0.0);
  return forms;
}

absl::Status CheckHessian(absl::string_view name, MatrixView<const float> value, int64_t in) {
  if (value.rows != in || value.cols != in) {
    return UsageError(name, ": expected [", in, ", ", in, "], found [", value.rows, ", ", value.cols, "]");
  }
  for (int64_t i = 0; i < in; ++i) {
    WeightRange range;
    if (!FindRange({value.row(i), static_cast<size_t>(in)}, range)) {
      int64_t j = 0;
      while (j + 1 < in && std::isfinite(value.row(i)[j])) ++j;
      return BadFileError(name, "[", i, "][", j, "]: expected a finite value, found ", value.row(i)[j]);
    }
    if (value.row(i)[i] < 0) return BadFileError(name, "[", i, "][", i, "]: expected a square, found ", value.row(i)[i]);
  }
  return absl::OkStatus();
}

}  // namespace pith
