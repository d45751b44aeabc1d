// What calibration keeps of an input that one or more linear modules share: moments of its channels, the Hessian, and a few of its rows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/cpu_features.h"
#include "base/thread_pool.h"
#include "compression/modifiers/hessian.h"
#include "tensor/tensor.h"

namespace pith {

// How much of it a method needs; each level has all of those before it.
enum class StatisticsLevel {
  kNone,
  kChannels,  // maxima, means and mean squares per channel
  kRows,      // a sample of the rows
  kHessian,
};

// Collects them from a stream of rows. The bits depend neither on how the rows are cut into calls nor on the number of threads. Not
// thread-safe. Memory: 24 bytes per channel, kSampleRows rows of f32, and what HessianAccumulator takes.
class InputStatistics {
 public:
  static constexpr int64_t kSampleRows = 512;

  // in >= 1. `expected_rows`: how many rows will come, about; the sample is spread over them.
  InputStatistics(int64_t in, StatisticsLevel level, int64_t expected_rows, Isa isa);

  // Rows [num_rows, in] of f32.
  void Add(MatrixView<const float> rows, ThreadPool& pool);
  // The input as it is when channel i of it has been divided by divisors[i] > 0, of what was added so far. Nothing may be added after.
  absl::Status DivideChannels(absl::Span<const float> divisors, ThreadPool& pool);

  int64_t in() const { return in_; }
  int64_t num_rows() const { return num_rows_; }
  StatisticsLevel level() const { return level_; }

  // Per channel, of all rows; zeros without rows.
  const std::vector<float>& max_abs() const { return max_abs_; }
  std::vector<float> MeanAbs() const;
  std::vector<float> MeanSquare() const;
  // Every n-th row, at most kSampleRows of them.
  MatrixView<const float> sample() const { return {sample_.data(), sample_rows_, in_}; }
  // [in, in] as HessianAccumulator gives it; valid until DivideChannels. Errors: those of HessianAccumulator::Hessian, kInternal for
  // another level.
  absl::StatusOr<MatrixView<const float>> Hessian(ThreadPool& pool);

 private:
  int64_t in_;
  StatisticsLevel level_;
  int64_t sample_stride_;
  int64_t num_rows_ = 0, sample_rows_ = 0;
  std::vector<float> max_abs_;
  std::vector<double> sum_abs_, sum_square_;
  std::vector<float> sample_;
  std::optional<HessianAccumulator> accumulator_;
  std::optional<Tensor> hessian_;
};

}  // namespace pith
