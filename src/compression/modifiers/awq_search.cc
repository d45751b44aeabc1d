#include "compression/modifiers/awq_search.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/status.h"
#include "compression/modifiers/hessian.h"
#include "compression/modifiers/quadratic_form_meter.h"
#include "compression/modifiers/solver_input.h"
#include "quantization/quantize_weight.h"

namespace pith {
namespace {

constexpr double kEpsilon = 1e-4;       // of the source: in the quotient, and the smallest scale
constexpr double kGroupEpsilon = 1e-6;  // of the source: added to the largest of a group

absl::Status CheckInput(absl::Span<const float> mean_abs_input, absl::Span<const MatrixView<const float>> weights,
                        MatrixView<const float> gram, const AwqOptions& options) {
  if (options.grid < 1) return UsageError("grid: expected at least 1, found ", options.grid);
  RETURN_IF_ERROR(CheckSharedInput("mean_abs_input", mean_abs_input, weights));
  const int64_t in = static_cast<int64_t>(mean_abs_input.size());
  RETURN_IF_ERROR(CheckTiedColumns(options.tied_columns, in));
  return CheckHessian("gram", gram, in);
}

// Each value replaced by the mean over its tied columns.
void AverageTied(const std::vector<int32_t>& tied_columns, std::vector<float>& values) {
  std::vector<double> sums(values.size());
  std::vector<int64_t> counts(values.size());
  for (size_t i = 0; i < tied_columns.size(); ++i) {
    sums[tied_columns[i]] += static_cast<double>(values[i]);
    ++counts[tied_columns[i]];
  }
  for (size_t i = 0; i < tied_columns.size(); ++i) {
    values[i] = static_cast<float>(sums[tied_columns[i]] / static_cast<double>(counts[tied_columns[i]]));
  }
}

// All candidates but the identity. Of the input alone r = 0 is the identity.
std::vector<AwqPoint> GridPoints(const AwqOptions& options) {
  const int grid = options.duo_scaling == DuoScaling::kBoth ? std::max(options.grid / 2, 1) : options.grid;
  std::vector<AwqPoint> points;
  for (const bool duo : {false, true}) {
    if (options.duo_scaling == (duo ? DuoScaling::kOff : DuoScaling::kOn)) continue;
    for (int i = duo ? 0 : 1; i <= grid; ++i) points.push_back({.duo = duo, .ratio = static_cast<double>(i) / grid});
  }
  return points;
}

// Measures one set of scales after the other.
class ErrorMeter {
 public:
  ErrorMeter(absl::Span<const MatrixView<const float>> weights, MatrixView<const float> gram, const QuantizationArgs& args,
             const AwqOptions& options, ThreadPool& pool)
      : weights_(weights),
        gram_(gram),
        args_(args),
        options_(options),
        pool_(pool),
        forms_(gram, options.isa, pool),
        importance_(static_cast<size_t>(gram.cols)) {
    int64_t rows = 0;
    for (const MatrixView<const float>& weight : weights) rows = std::max(rows, weight.rows);
    scaled_ = Tensor(DType::kF32, {rows, gram.cols});
  }

  absl::StatusOr<double> Measure(absl::Span<const float> scales) {
    for (int64_t i = 0; i < gram_.cols; ++i) {
      const double scale = scales[i];
      importance_[i] = static_cast<float>(static_cast<double>(gram_.row(i)[i]) / (scale * scale));
    }
    double error = 0;
    for (const MatrixView<const float>& weight : weights_) {
      ASSIGN_OR_RETURN(const double layer_error, MeasureLayer(weight, scales));
      error += layer_error;
    }
    return error;
  }

 private:
  absl::StatusOr<double> MeasureLayer(MatrixView<const float> weight, absl::Span<const float> scales) {
    const int64_t in = weight.cols;
    float* scaled = scaled_.as<float>().data();
    pool_.ParallelFor(weight.rows, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t o = begin; o < end; ++o) {
        for (int64_t i = 0; i < in; ++i) scaled[o * in + i] = weight.row(o)[i] * scales[i];
      }
    });
    ASSIGN_OR_RETURN(const QuantizedTensor quantized,
                     QuantizeWeight({scaled, weight.rows, in}, args_, options_.scale_dtype, options_.clip_search, pool_, importance_));
    const auto fill_error = [&](int64_t o, absl::Span<float> error) {
      quantized.DequantizeRow(o, error);
      for (int64_t i = 0; i < in; ++i) error[i] = weight.row(o)[i] - error[i] / scales[i];
    };
    double sum = 0;
    for (const double row : forms_.Measure(weight.rows, fill_error, pool_)) sum += row;
    return sum;
  }

  absl::Span<const MatrixView<const float>> weights_;
  MatrixView<const float> gram_;
  const QuantizationArgs& args_;
  const AwqOptions& options_;
  ThreadPool& pool_;
  QuadraticFormMeter forms_;
  std::vector<float> importance_;  // of the scaled channels
  Tensor scaled_;                  // [largest out, in]
};

}  // namespace

std::vector<float> AwqScales(absl::Span<const float> mean_abs_input, absl::Span<const float> mean_abs_weight, double ratio) {
  CHECK(mean_abs_weight.empty() || mean_abs_weight.size() == mean_abs_input.size());
  std::vector<double> scales(mean_abs_input.size(), 0.0);
  double largest = 0, smallest = HUGE_VAL;
  for (size_t i = 0; i < scales.size(); ++i) {
    if (mean_abs_input[i] == 0) continue;
    const double numerator = std::pow(static_cast<double>(mean_abs_input[i]), ratio);
    const double denominator = mean_abs_weight.empty() ? 1.0 : std::pow(static_cast<double>(mean_abs_weight[i]), 1 - ratio) + kEpsilon;
    scales[i] = std::max(numerator / denominator, kEpsilon);
    largest = std::max(largest, scales[i]);
    smallest = std::min(smallest, scales[i]);
  }
  std::vector<float> normalized(scales.size(), 1.0f);
  for (size_t i = 0; i < scales.size(); ++i) {
    if (scales[i] > 0) normalized[i] = static_cast<float>(scales[i] / std::sqrt(largest * smallest));
  }
  return normalized;
}

std::vector<float> NormalizedWeightMeans(absl::Span<const MatrixView<const float>> weights, int64_t group_size) {
  CHECK(!weights.empty() && group_size > 0 && weights[0].cols % group_size == 0);
  const int64_t in = weights[0].cols;
  std::vector<double> sums(static_cast<size_t>(in));
  int64_t rows = 0;
  for (const MatrixView<const float>& weight : weights) {
    rows += weight.rows;
    for (int64_t o = 0; o < weight.rows; ++o) {
      for (int64_t begin = 0; begin < in; begin += group_size) {
        const float* row = weight.row(o) + begin;
        double largest = 0;
        for (int64_t i = 0; i < group_size; ++i) largest = std::max(largest, static_cast<double>(std::fabs(row[i])));
        const double inverse = 1.0 / (largest + kGroupEpsilon);
        for (int64_t i = 0; i < group_size; ++i) sums[begin + i] += static_cast<double>(std::fabs(row[i])) * inverse;
      }
    }
  }
  std::vector<float> means(sums.size());
  for (size_t i = 0; i < sums.size(); ++i) means[i] = static_cast<float>(sums[i] / static_cast<double>(std::max<int64_t>(rows, 1)));
  return means;
}

absl::StatusOr<AwqResult> SearchAwqScales(absl::Span<const float> mean_abs_input, absl::Span<const MatrixView<const float>> weights,
                                          MatrixView<const float> gram, const QuantizationArgs& args, const AwqOptions& options,
                                          ThreadPool& pool) {
  RETURN_IF_ERROR(CheckInput(mean_abs_input, weights, gram, options));
  ErrorMeter meter(weights, gram, args, options, pool);
  AwqResult result{.scales = std::vector<float>(mean_abs_input.size(), 1.0f), .best = {.identity = true}};
  // The identity comes first: it also finds what QuantizeWeight refuses.
  ASSIGN_OR_RETURN(result.best.error, meter.Measure(result.scales));
  result.curve.push_back(result.best);
  std::vector<float> mean_input(mean_abs_input.begin(), mean_abs_input.end());
  std::vector<float> mean_weight = NormalizedWeightMeans(weights, args.columns_per_scale(gram.cols));
  for (std::vector<float>* means : {&mean_input, &mean_weight}) AverageTied(options.tied_columns, *means);
  for (AwqPoint point : GridPoints(options)) {
    std::vector<float> scales = AwqScales(mean_input, point.duo ? absl::MakeConstSpan(mean_weight) : absl::Span<const float>(),
                                          point.ratio);
    ASSIGN_OR_RETURN(point.error, meter.Measure(scales));
    result.curve.push_back(point);
    if (point.error < result.best.error) {
      result.best = point;
      result.scales = std::move(scales);
    }
  }
  return result;
}

}  // namespace pith
