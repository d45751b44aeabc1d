#include "quantization/quantize_weight.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "base/status.h"

namespace pith {
namespace {

constexpr int64_t kRowGrain = 16;

absl::Span<const float> Row(MatrixView<const float> weight, int64_t o) { return {weight.row(o), static_cast<size_t>(weight.cols)}; }

absl::Status CheckArgs(MatrixView<const float> weight, const QuantizationArgs& args) {
  RETURN_IF_ERROR(Validate(args));
  const bool integer = args.type == QuantizationType::kInt, block = args.strategy == QuantizationStrategy::kBlock;
  if (args.num_bits < 2 || args.dynamic || (integer && block) || args.strategy == QuantizationStrategy::kToken) {
    return NotSupportedError("weights: expected static 2 to 8 bit integer codes per tensor, channel or group, or 8-bit float codes, found ",
                             args.num_bits, "-bit ", integer ? "int" : "float", args.dynamic ? " dynamic" : "", " per ",
                             StrategyName(args.strategy));
  }
  if (weight.rows <= 0 || weight.cols <= 0) {
    return UsageError("weight: expected at least one row and column, found [", weight.rows, ", ", weight.cols, "]");
  }
  if (args.strategy == QuantizationStrategy::kGroup && weight.cols % args.group_size != 0) {
    return UsageError("group_size: expected a divisor of in=", weight.cols, ", found ", args.group_size);
  }
  if (block && weight.cols % args.block_cols != 0) {
    return NotSupportedError("block_structure: expected rows of whole blocks of ", args.block_cols, ", found in=", weight.cols);
  }
  return absl::OkStatus();
}

// Names the first value that is not finite of a row that has one.
absl::Status NotFiniteError(MatrixView<const float> weight, int64_t o) {
  int64_t i = 0;
  while (i + 1 < weight.cols && std::isfinite(weight.row(o)[i])) ++i;
  return BadFileError("weight[", o, "][", i, "]: expected a finite value, found ", weight.row(o)[i]);
}

// Divided by its largest, so that sums stay far from the ends of f32. Empty stays empty.
absl::StatusOr<std::vector<float>> NormalizeImportance(absl::Span<const float> importance, int64_t in) {
  if (!importance.empty() && static_cast<int64_t>(importance.size()) != in) {
    return UsageError("importance: expected a number per column, in=", in, ", found ", importance.size());
  }
  float largest = 0;
  for (size_t i = 0; i < importance.size(); ++i) {
    if (!std::isfinite(importance[i]) || importance[i] < 0) {
      return UsageError("importance[", i, "]: expected a finite number >= 0, found ", importance[i]);
    }
    largest = std::max(largest, importance[i]);
  }
  std::vector<float> shares(importance.begin(), importance.end());
  if (largest > 0) {
    for (float& share : shares) share /= largest;
  }
  return shares;
}

void LowerTo(std::atomic<int64_t>& minimum, int64_t value) {
  int64_t current = minimum.load(std::memory_order_relaxed);
  while (value < current && !minimum.compare_exchange_weak(current, value, std::memory_order_relaxed)) {
  }
}

// Scales and zero points of rows of a weight quantized per channel or group, and their codes.
class RowQuantizer {
 public:
  RowQuantizer(MatrixView<const float> weight, const QuantizationArgs& args, DType scale_dtype, const ClipSearch& search,
               absl::Span<const float> importance, QuantizedTensor& result)
      : weight_(weight), args_(args), scale_dtype_(scale_dtype), search_(search), importance_(importance), result_(result) {}

  // False when a value is not finite.
  bool QuantizeRow(int64_t o) const {
    for (int64_t group = 0; group < result_.num_groups(); ++group) {
      const absl::Span<const float> values = Group(o, group);
      WeightRange range;
      if (!FindRange(values, range)) return false;
      Store(o, group, SearchQParams(values, range, args_, scale_dtype_, search_, Importance(group)));
    }
    return true;
  }

  // Rows [begin, end) share their scales, from the whole range. A row with a value that is not finite (the first of
  // the first such group), or `end`.
  int64_t QuantizeRowsTogether(int64_t begin, int64_t end) const {
    for (int64_t group = 0; group < result_.num_groups(); ++group) {
      WeightRange range;
      for (int64_t o = begin; o < end; ++o) {
        WeightRange row;
        if (!FindRange(Group(o, group), row)) return o;
        range = {std::min(range.min, row.min), std::max(range.max, row.max)};
      }
      for (int64_t o = begin; o < end; ++o) Store(o, group, ComputeQParams(range, args_, scale_dtype_));
    }
    return end;
  }

  void Store(int64_t o, int64_t group, const QParams& qparams) const {
    const int64_t index = o * result_.num_groups() + group;
    const int64_t begin = o * result_.in + group * result_.group_size;
    result_.scale[index] = qparams.scale;
    if (!args_.symmetric) result_.zero_point[index] = static_cast<uint8_t>(qparams.zero_point - args_.min_code());
    QuantizeValues(Group(o, group), qparams, args_, absl::MakeSpan(result_.code.data() + begin, static_cast<size_t>(result_.group_size)));
  }

 private:
  absl::Span<const float> Group(int64_t o, int64_t group) const {
    return Row(weight_, o).subspan(static_cast<size_t>(group * result_.group_size), static_cast<size_t>(result_.group_size));
  }

  absl::Span<const float> Importance(int64_t group) const {
    if (importance_.empty()) return {};
    return importance_.subspan(static_cast<size_t>(group * result_.group_size), static_cast<size_t>(result_.group_size));
  }

  MatrixView<const float> weight_;
  const QuantizationArgs& args_;
  DType scale_dtype_;
  const ClipSearch& search_;
  absl::Span<const float> importance_;
  QuantizedTensor& result_;
};

// Sum over rows of the clipping error, the same for any number of threads.
double TensorClipError(MatrixView<const float> weight, const QParams& qparams, const QuantizationArgs& args, double norm,
                       absl::Span<const float> importance, std::vector<double>& row_errors, ThreadPool& pool) {
  pool.ParallelForDynamic(weight.rows, kRowGrain, [&](int64_t begin, int64_t end, int) {
    for (int64_t o = begin; o < end; ++o) {
      row_errors[o] = ClipError(Row(weight, o), qparams, args, norm, importance);
    }
  });
  double sum = 0;
  for (const double error : row_errors) sum += error;
  return sum;
}

absl::StatusOr<QParams> SearchTensorQParams(MatrixView<const float> weight, const QuantizationArgs& args, DType scale_dtype,
                                            const ClipSearch& search, absl::Span<const float> importance, ThreadPool& pool) {
  WeightRange range;
  for (int64_t o = 0; o < weight.rows; ++o) {
    WeightRange row;
    if (!FindRange(Row(weight, o), row)) return NotFiniteError(weight, o);
    range = {std::min(range.min, row.min), std::max(range.max, row.max)};
  }
  QParams best = ComputeQParams(range, args, scale_dtype);
  if (search.num_candidates() == 1 || args.type == QuantizationType::kFloat || !std::isfinite(best.scale)) return best;
  std::vector<double> row_errors(static_cast<size_t>(weight.rows));
  double best_error = TensorClipError(weight, best, args, search.norm, importance, row_errors, pool);
  for (int i = 1; i < search.num_candidates(); ++i) {
    const float p = 1.0f - static_cast<float>(i) / static_cast<float>(search.grid);
    const QParams candidate = ComputeQParams({range.min * p, range.max * p}, args, scale_dtype);
    const double error = TensorClipError(weight, candidate, args, search.norm, importance, row_errors, pool);
    if (error < best_error) {
      best_error = error;
      best = candidate;
    }
  }
  return best;
}

// Per channel, group or block. The first row with a value that is not finite, or `rows`.
int64_t QuantizeAllRows(const RowQuantizer& quantizer, int64_t rows, const QuantizationArgs& args, ThreadPool& pool) {
  std::atomic<int64_t> first_bad_row = rows;
  const int64_t block = args.strategy == QuantizationStrategy::kBlock ? args.block_rows : 1;
  const int64_t grain = block == 1 ? kRowGrain : 1;
  pool.ParallelForDynamic((rows + block - 1) / block, grain, [&](int64_t begin, int64_t end, int) {
    for (int64_t b = begin; b < end && b * block < first_bad_row.load(std::memory_order_relaxed); ++b) {
      if (block == 1) {
        if (!quantizer.QuantizeRow(b)) LowerTo(first_bad_row, b);
        continue;
      }
      const int64_t block_end = std::min(rows, (b + 1) * block), bad = quantizer.QuantizeRowsTogether(b * block, block_end);
      if (bad < block_end) LowerTo(first_bad_row, bad);
    }
  });
  return first_bad_row;
}

absl::Status CheckScales(const QuantizedTensor& tensor) {
  for (size_t i = 0; i < tensor.scale.size(); ++i) {
    if (std::isfinite(tensor.scale[i])) continue;
    return UsageError("weight row ", i / tensor.num_groups(), ", group ", i % tensor.num_groups(), ": expected a range whose scale fits ",
                      DTypeName(tensor.scale_dtype), ", found one that overflows");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<QuantizedTensor> QuantizeWeight(MatrixView<const float> weight, const QuantizationArgs& args, DType scale_dtype,
                                               const ClipSearch& search, ThreadPool& pool, absl::Span<const float> importance) {
  RETURN_IF_ERROR(CheckArgs(weight, args));
  ASSIGN_OR_RETURN(const std::vector<float> shares, NormalizeImportance(importance, weight.cols));
  QuantizedTensor result;
  result.out = weight.rows;
  result.in = weight.cols;
  result.bits = args.num_bits;
  result.type = args.type;
  result.group_size = args.columns_per_scale(weight.cols);
  result.scale_dtype = scale_dtype;
  result.code.resize(static_cast<size_t>(weight.rows * weight.cols));
  result.scale.resize(static_cast<size_t>(weight.rows * result.num_groups()));
  if (!args.symmetric) result.zero_point.resize(result.scale.size());
  const RowQuantizer quantizer(weight, args, scale_dtype, search, shares, result);

  if (args.strategy == QuantizationStrategy::kTensor) {
    ASSIGN_OR_RETURN(const QParams qparams, SearchTensorQParams(weight, args, scale_dtype, search, shares, pool));
    pool.ParallelForDynamic(weight.rows, kRowGrain, [&](int64_t begin, int64_t end, int) {
      for (int64_t o = begin; o < end; ++o) quantizer.Store(o, 0, qparams);
    });
  } else {
    const int64_t first_bad_row = QuantizeAllRows(quantizer, weight.rows, args, pool);
    if (first_bad_row < weight.rows) return NotFiniteError(weight, first_bad_row);
  }
  RETURN_IF_ERROR(CheckScales(result));
  return result;
}

}  // namespace pith
