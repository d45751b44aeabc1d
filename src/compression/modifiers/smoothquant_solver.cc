#include "compression/modifiers/smoothquant_solver.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/status.h"
#include "compression/blas.h"
#include "compression/modifiers/solver_input.h"
#include "kernels/quantize_activation.h"
#include "quantization/quantize_weight.h"

namespace pith {
namespace {

constexpr double kSmallestScale = 1e-5, kLargestScale = 1e30;
constexpr int64_t kTileRows = 256, kTileCols = 128;  // of the outputs, per job

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

absl::Status CheckInput(absl::Span<const float> max_abs_input, absl::Span<const MatrixView<const float>> weights,
                        MatrixView<const float> rows, const SmoothQuantOptions& options) {
  if (options.grid < 1) return UsageError("grid: expected at least 1, found ", options.grid);
  if (options.alpha.has_value() && !(*options.alpha >= 0 && *options.alpha <= 1)) {
    return UsageError("alpha: expected 0 to 1, found ", *options.alpha);
  }
  RETURN_IF_ERROR(CheckSharedInput("max_abs_input", max_abs_input, weights));
  const int64_t in = static_cast<int64_t>(max_abs_input.size());
  RETURN_IF_ERROR(CheckTiedColumns(options.tied_columns, in));
  if (rows.rows == 0) {
    return options.alpha.has_value() ? absl::OkStatus() : UsageError("rows: expected some to search alpha with, found none");
  }
  if (rows.cols != in) return UsageError("rows: expected in=", in, ", found ", rows.cols);
  for (int64_t r = 0; r < rows.rows; ++r) {
    WeightRange range;
    if (!FindRange({rows.row(r), static_cast<size_t>(in)}, range)) return BadFileError("rows[", r, "]: expected finite values");
  }
  return absl::OkStatus();
}

// Each value replaced by the largest of its tied columns.
void SpreadLargest(const std::vector<int32_t>& tied_columns, std::vector<float>& values) {
  std::vector<float> largest(values.size());
  for (size_t i = 0; i < tied_columns.size(); ++i) largest[tied_columns[i]] = std::max(largest[tied_columns[i]], values[i]);
  for (size_t i = 0; i < tied_columns.size(); ++i) values[i] = largest[tied_columns[i]];
}

// x / s as the int8 kernels see it: quantized per token, and back.
void QuantizeToken(const float* x, absl::Span<const float> scales, float* out) {
  float largest = 0;
  for (size_t i = 0; i < scales.size(); ++i) {
    out[i] = x[i] / scales[i];
    largest = std::max(largest, std::fabs(out[i]));
  }
  const bool tiny = largest < kSmallestActivationMax;
  const float inverse = tiny ? 0.0f : kInt8ActivationLimit / largest, scale = tiny ? 0.0f : largest / kInt8ActivationLimit;
  for (size_t i = 0; i < scales.size(); ++i) out[i] = std::nearbyint(out[i] * inverse) * scale;
}

// Measures one set of scales after the other.
class ErrorMeter {
 public:
  ErrorMeter(absl::Span<const MatrixView<const float>> weights, MatrixView<const float> rows, const SmoothQuantOptions& options,
             ThreadPool& pool)
      : weights_(weights), rows_(rows), options_(options), pool_(pool), tokens_(DType::kF32, {rows.rows, rows.cols}) {
    int64_t largest = 0;
    for (const MatrixView<const float>& weight : weights) {
      largest = std::max(largest, weight.rows);
      outputs_.emplace_back(DType::kF32, std::initializer_list<int64_t>{rows.rows, weight.rows});
      const MatrixView<float> output(outputs_.back().as<float>().data(), rows.rows, weight.rows);
      ForTiles(weight.rows, [&](int64_t r, int64_t num_rows, int64_t o, int64_t num_cols, int64_t) {
        Multiply(1.0f, Slice(rows, r, num_rows), Transpose::kNo, Slice(weight, o, num_cols), Transpose::kYes, 0.0f,
                 {output.row(r) + o, num_rows, num_cols, output.stride});
      });
    }
    scaled_ = Tensor(DType::kF32, {largest, rows.cols});
    SetTokenWeights();
  }

  absl::StatusOr<double> Measure(absl::Span<const float> scales) {
    if (rows_.rows == 0) return 0.0;
    float* tokens = tokens_.as<float>().data();
    pool_.ParallelFor(rows_.rows, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) QuantizeToken(rows_.row(r), scales, tokens + r * rows_.cols);
    });
    double error = 0;
    for (size_t i = 0; i < weights_.size(); ++i) {
      RETURN_IF_ERROR(QuantizeScaled(weights_[i], scales));
      error += OutputError(outputs_[i], weights_[i].rows);
    }
    return error;
  }

 private:
  static MatrixView<const float> Slice(MatrixView<const float> matrix, int64_t begin, int64_t rows) {
    return {matrix.row(begin), rows, matrix.cols, matrix.stride};
  }

  // body(first row, rows, first output, outputs, index of the tile) for all tiles of [rows, out].
  template <typename Body> int64_t ForTiles(int64_t out, const Body& body) {
    const int64_t across = CeilDiv(out, kTileCols), tiles = across * CeilDiv(rows_.rows, kTileRows);
    pool_.ParallelForDynamic(tiles, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t tile = begin; tile < end; ++tile) {
        const int64_t r = tile / across * kTileRows, o = tile % across * kTileCols;
        body(r, std::min(kTileRows, rows_.rows - r), o, std::min(kTileCols, out - o), tile);
      }
    });
    return tiles;
  }

  // scaled_ = the dequantized Q(W s).
  absl::Status QuantizeScaled(MatrixView<const float> weight, absl::Span<const float> scales) {
    const int64_t in = weight.cols;
    float* scaled = scaled_.as<float>().data();
    pool_.ParallelFor(weight.rows, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t o = begin; o < end; ++o) {
        for (int64_t i = 0; i < in; ++i) scaled[o * in + i] = weight.row(o)[i] * scales[i];
      }
    });
    ASSIGN_OR_RETURN(const QuantizedTensor quantized,
                     QuantizeWeight({scaled, weight.rows, in}, options_.args, options_.scale_dtype, options_.clip_search, pool_));
    pool_.ParallelFor(weight.rows, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t o = begin; o < end; ++o) quantized.DequantizeRow(o, {scaled + o * in, static_cast<size_t>(in)});
    });
    return absl::OkStatus();
  }

  // 1 / (n ||x W^T||^2) for every token x, all layers side by side; 0 for one without output.
  void SetTokenWeights() {
    token_weights_.assign(static_cast<size_t>(rows_.rows), 0.0);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const float* output = outputs_[i].as<float>().data();
      for (double& sum : token_weights_) {
        for (int64_t o = 0; o < weights_[i].rows; ++o, ++output) sum += static_cast<double>(*output) * static_cast<double>(*output);
      }
    }
    for (double& weight : token_weights_) weight = weight > 0 ? 1.0 / (weight * static_cast<double>(rows_.rows)) : 0.0;
  }

  // The sum over the tokens of ||output - tokens_ scaled_^T||^2 by their weights, summed tile by tile in order.
  double OutputError(const Tensor& output, int64_t out) {
    const MatrixView<const float> tokens(tokens_.as<float>().data(), rows_.rows, rows_.cols);
    const MatrixView<const float> weight(scaled_.as<float>().data(), out, rows_.cols);
    const MatrixView<const float> exact(output.as<float>().data(), rows_.rows, out);
    std::vector<double> sums(static_cast<size_t>(CeilDiv(out, kTileCols) * CeilDiv(rows_.rows, kTileRows)));
    ForTiles(out, [&](int64_t r, int64_t num_rows, int64_t o, int64_t num_cols, int64_t tile) {
      std::vector<float> error(static_cast<size_t>(num_rows * num_cols));
      const MatrixView<float> view(error.data(), num_rows, num_cols);
      for (int64_t i = 0; i < num_rows; ++i) {
        std::memcpy(view.row(i), exact.row(r + i) + o, static_cast<size_t>(num_cols) * sizeof(float));
      }
      Multiply(-1.0f, Slice(tokens, r, num_rows), Transpose::kNo, Slice(weight, o, num_cols), Transpose::kYes, 1.0f, view);
      for (int64_t i = 0; i < num_rows; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < num_cols; ++j) sum += static_cast<double>(view.row(i)[j]) * static_cast<double>(view.row(i)[j]);
        sums[tile] += sum * token_weights_[r + i];
      }
    });
    double sum = 0;
    for (const double tile_sum : sums) sum += tile_sum;
    return sum;
  }

  absl::Span<const MatrixView<const float>> weights_;
  MatrixView<const float> rows_;
  const SmoothQuantOptions& options_;
  ThreadPool& pool_;
  std::vector<Tensor> outputs_;  // X W^T per layer: [n, out_i]
  std::vector<double> token_weights_;
  Tensor tokens_;  // A(X / s): [n, in]
  Tensor scaled_;  // [largest out, in]
};

}  // namespace

std::vector<float> SmoothingScales(absl::Span<const float> max_abs_input, absl::Span<const float> max_abs_weight, double alpha) {
  CHECK_EQ(max_abs_input.size(), max_abs_weight.size());
  std::vector<float> scales(max_abs_input.size(), 1.0f);
  for (size_t i = 0; i < scales.size(); ++i) {
    if (max_abs_input[i] == 0 || max_abs_weight[i] == 0) continue;
    const double input = max_abs_input[i], weight = max_abs_weight[i];
    scales[i] = static_cast<float>(std::clamp(std::pow(input, alpha) / std::pow(weight, 1 - alpha), kSmallestScale, kLargestScale));
  }
  return scales;
}

std::vector<float> MaxAbsColumns(absl::Span<const MatrixView<const float>> weights) {
  CHECK(!weights.empty());
  std::vector<float> largest(static_cast<size_t>(weights[0].cols));
  for (const MatrixView<const float>& weight : weights) {
    for (int64_t o = 0; o < weight.rows; ++o) {
      for (int64_t i = 0; i < weight.cols; ++i) largest[i] = std::max(largest[i], std::fabs(weight.row(o)[i]));
    }
  }
  return largest;
}

absl::StatusOr<SmoothQuantResult> SolveSmoothQuant(absl::Span<const float> max_abs_input, absl::Span<const MatrixView<const float>> weights,
                                                   MatrixView<const float> rows, const SmoothQuantOptions& options, ThreadPool& pool) {
  RETURN_IF_ERROR(CheckInput(max_abs_input, weights, rows, options));
  if (rows.rows == 0) rows.cols = weights[0].cols;
  ErrorMeter meter(weights, rows, options, pool);
  SmoothQuantResult result{.scales = std::vector<float>(max_abs_input.size(), 1.0f), .best = {.identity = true}};
  // No smoothing comes first: it also finds what QuantizeWeight refuses.
  ASSIGN_OR_RETURN(result.best.error, meter.Measure(result.scales));
  result.curve.push_back(result.best);
  std::vector<float> tied_input(max_abs_input.begin(), max_abs_input.end()), max_abs_weight = MaxAbsColumns(weights);
  for (std::vector<float>* largest : {&tied_input, &max_abs_weight}) SpreadLargest(options.tied_columns, *largest);
  const int last = options.alpha.has_value() ? 0 : options.grid;
  for (int i = 0; i <= last; ++i) {
    SmoothQuantPoint point{.alpha = options.alpha.value_or(static_cast<double>(i) / options.grid)};
    const std::vector<float> scales = SmoothingScales(tied_input, max_abs_weight, point.alpha);
    ASSIGN_OR_RETURN(point.error, meter.Measure(scales));
    result.curve.push_back(point);
    if (options.alpha.has_value() || point.error < result.best.error) {
      result.best = point;
      result.scales = scales;
    }
  }
  return result;
}

}  // namespace pith
