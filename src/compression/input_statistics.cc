#include "compression/input_statistics.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/status.h"

namespace pith {
namespace {

std::vector<float> Means(const std::vector<double>& sums, int64_t count) {
  std::vector<float> means(sums.size());
  for (size_t i = 0; i < sums.size() && count > 0; ++i) means[i] = static_cast<float>(sums[i] / static_cast<double>(count));
  return means;
}

}  // namespace

InputStatistics::InputStatistics(int64_t in, StatisticsLevel level, int64_t expected_rows, Isa isa)
    : in_(in), level_(level), sample_stride_(std::max<int64_t>(1, (expected_rows + kSampleRows - 1) / kSampleRows)) {
  CHECK_GE(in, 1);
  max_abs_.resize(static_cast<size_t>(in));
  sum_abs_.resize(static_cast<size_t>(in));
  sum_square_.resize(static_cast<size_t>(in));
  if (level >= StatisticsLevel::kHessian) accumulator_.emplace(in, isa);
}

void InputStatistics::Add(MatrixView<const float> rows, ThreadPool& pool) {
  CHECK_EQ(rows.cols, in_);
  CHECK(!hessian_.has_value());
  pool.ParallelFor(in_, 64, [&](int64_t begin, int64_t end, int) {
    float* const max_abs = max_abs_.data();
    double* const sum_abs = sum_abs_.data();
    double* const sum_square = sum_square_.data();
    for (int64_t r = 0; r < rows.rows; ++r) {
      const float* row = rows.row(r);
      for (int64_t i = begin; i < end; ++i) {
        const float magnitude = std::fabs(row[i]);
        // A NaN stays, so that it is found.
        max_abs[i] = magnitude <= max_abs[i] || std::isnan(max_abs[i]) ? max_abs[i] : magnitude;
        sum_abs[i] += static_cast<double>(magnitude);
        sum_square[i] += static_cast<double>(magnitude) * static_cast<double>(magnitude);
      }
    }
  });
  for (int64_t r = 0; r < rows.rows && level_ >= StatisticsLevel::kRows; ++r) {
    if ((num_rows_ + r) % sample_stride_ != 0 || sample_rows_ == kSampleRows) continue;
    sample_.insert(sample_.end(), rows.row(r), rows.row(r) + in_);
    ++sample_rows_;
  }
  num_rows_ += rows.rows;
  if (accumulator_.has_value()) accumulator_->Add(rows, pool);
}

std::vector<float> InputStatistics::MeanAbs() const { return Means(sum_abs_, num_rows_); }
std::vector<float> InputStatistics::MeanSquare() const { return Means(sum_square_, num_rows_); }

absl::StatusOr<MatrixView<const float>> InputStatistics::Hessian(ThreadPool& pool) {
  if (!hessian_.has_value()) {
    if (!accumulator_.has_value()) return BugError("expected statistics with a Hessian");
    ASSIGN_OR_RETURN(hessian_, accumulator_->Hessian(pool));
    accumulator_.reset();  // twice as large
  }
  return MatrixView<const float>(hessian_->as<float>().data(), in_, in_);
}

absl::Status InputStatistics::DivideChannels(absl::Span<const float> divisors, ThreadPool& pool) {
  CHECK_EQ(static_cast<int64_t>(divisors.size()), in_);
  if (accumulator_.has_value()) RETURN_IF_ERROR(Hessian(pool).status());
  for (int64_t i = 0; i < in_; ++i) {
    const double divisor = divisors[static_cast<size_t>(i)];
    CHECK(divisor > 0);
    max_abs_[i] = static_cast<float>(max_abs_[i] / divisor);
    sum_abs_[i] /= divisor;
    sum_square_[i] /= divisor * divisor;
    for (int64_t r = 0; r < sample_rows_; ++r) sample_[r * in_ + i] /= divisors[i];
  }
  if (!hessian_.has_value()) return absl::OkStatus();
  float* hessian = hessian_->as<float>().data();
  pool.ParallelFor(in_, 8, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < in_; ++j) {
        hessian[i * in_ + j] = static_cast<float>(hessian[i * in_ + j] / (static_cast<double>(divisors[i]) * divisors[j]));
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace pith
