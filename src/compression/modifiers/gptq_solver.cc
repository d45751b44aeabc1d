#include "compression/modifiers/gptq_solver.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "compression/blas.h"
#include "compression/modifiers/scale_refit.h"
#include "quantization/quantize_weight.h"

namespace pith {
namespace {

constexpr double kSmallestPivot = 1e-6;        // of the mean of the diagonal
constexpr double kSmallestDamping = 0.001;     // where raising begins
constexpr int64_t kFactorGrain = 16;           // rows of a matrix [in, in] per job
constexpr int64_t kRows = 64;                  // rows that are coded side by side, one per vector lane
constexpr int64_t kBlock = 128;                // columns between two products with all errors so far
constexpr float kRoundingMagic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to the nearest integer, ties to even, below 2^22

// The lower triangle of the damped Hessian in reverse order of coding: its Cholesky factor read backwards is the upper triangular R.
void FillReversed(const GptqFactors& factors, double mean, MatrixView<double> out, ThreadPool& pool) {
  const int64_t in = out.rows;
  pool.ParallelForDynamic(in, kFactorGrain, [&](int64_t begin, int64_t end, int) {
    for (int64_t a = begin; a < end; ++a) {
      const int32_t column = factors.order[in - 1 - a];
      const float* source = factors.hessian.row(column);
      double* row = out.row(a);
      for (int64_t b = 0; b < a; ++b) row[b] = static_cast<double>(source[factors.order[in - 1 - b]]);
      row[a] = (source[column] == 0 ? mean : static_cast<double>(source[column])) + factors.damping_term;
    }
  });
}

bool PivotsHold(MatrixView<const double> factor, double smallest) {
  for (int64_t i = 0; i < factor.rows; ++i) {
    // Also false for a NaN.
    if (!(factor.row(i)[i] * factor.row(i)[i] >= smallest)) return false;
  }
  return true;
}

// A and the pivots from the factor of the reversed matrix.
void TakeFeedback(MatrixView<const double> factor, GptqFactors& factors, ThreadPool& pool) {
  const int64_t in = factor.rows;
  factors.pivot.resize(static_cast<size_t>(in));
  std::vector<double> inverse(static_cast<size_t>(in));  // of the diagonal, in the factor's order
  for (int64_t b = 0; b < in; ++b) {
    const double diagonal = factor.row(b)[b];
    factors.pivot[in - 1 - b] = static_cast<float>(diagonal * diagonal);
    inverse[b] = 1.0 / diagonal;
  }
  factors.feedback = Tensor(DType::kF32, {in, in});
  float* feedback = factors.feedback.as<float>().data();
  pool.ParallelForDynamic(in, kFactorGrain, [&](int64_t begin, int64_t end, int) {
    for (int64_t j = begin; j < end; ++j) {
      const double* row = factor.row(in - 1 - j);
      for (int64_t k = j + 1; k < in; ++k) feedback[j * in + k] = static_cast<float>(row[in - 1 - k] * inverse[in - 1 - k]);
    }
  });
}

std::vector<int32_t> CodingOrder(const std::vector<float>& diagonal, bool activation_order) {
  std::vector<int32_t> order(diagonal.size());
  std::iota(order.begin(), order.end(), 0);
  if (activation_order) {
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return diagonal[a] > diagonal[b]; });
  }
  return order;
}

// `weight` with zeros in dead columns.
void CopyWithoutDead(MatrixView<const float> weight, const std::vector<float>& diagonal, float* out, ThreadPool& pool) {
  pool.ParallelFor(weight.rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t o = begin; o < end; ++o) {
      for (int64_t i = 0; i < weight.cols; ++i) out[o * weight.cols + i] = diagonal[i] == 0 ? 0.0f : weight.row(o)[i];
    }
  });
}

// Codes kRows rows at a time, with columns in the order of coding and rows as lanes: [in, kRows] throughout.
class RowCoder {
 public:
  // `scales` has the scales and zero points of all groups; the codes go to `codes` [out, in].
  RowCoder(MatrixView<const float> weight, const GptqFactors& factors, const QuantizedTensor& scales, std::vector<uint8_t>& codes)
      : weight_(weight),
        factors_(factors),
        scales_(scales),
        codes_(codes),
        original_(DType::kF32, {weight.cols, kRows}),
        error_(DType::kF32, {weight.cols, kRows}),
        updated_(DType::kF32, {kBlock, kRows}),
        scale_(DType::kF32, {scales.num_groups(), kRows}),
        zero_point_(DType::kF32, {scales.num_groups(), kRows}),
        code_(DType::kU8, {weight.cols, kRows}) {}

  // Rows [begin, begin + count), count <= kRows.
  void CodeRows(int64_t begin, int64_t count) {
    LoadRows(begin, count);
    for (int64_t k = 0; k < weight_.cols; k += kBlock) CodeBlock(k, std::min(k + kBlock, weight_.cols));
    const uint8_t* code = code_.as<uint8_t>().data();
    for (int64_t r = 0; r < count; ++r) {
      uint8_t* row = codes_.data() + (begin + r) * weight_.cols;
      for (int64_t k = 0; k < weight_.cols; ++k) row[factors_.order[k]] = code[k * kRows + r];
    }
  }

 private:
  // Rows that do not exist are zeros of scale 1.
  void LoadRows(int64_t begin, int64_t count) {
    float* original = original_.as<float>().data();
    float* scale = scale_.as<float>().data();
    float* zero_point = zero_point_.as<float>().data();
    const int64_t groups = scales_.num_groups();
    for (int64_t r = 0; r < kRows; ++r) {
      const bool exists = r < count;
      const float* row = exists ? weight_.row(begin + r) : nullptr;
      for (int64_t k = 0; k < weight_.cols; ++k) original[k * kRows + r] = exists ? row[factors_.order[k]] : 0.0f;
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t index = (begin + r) * groups + g;
        const int zero = exists && !scales_.zero_point.empty() ? scales_.zero_point[index] : scales_.default_zero_point();
        scale[g * kRows + r] = exists ? scales_.scale[index] : 1.0f;
        zero_point[g * kRows + r] = static_cast<float>(zero);
      }
    }
  }

  // Columns [begin, end) in the order of coding. What earlier blocks owe them comes from one product, the rest column by column.
  void CodeBlock(int64_t begin, int64_t end) {
    const int64_t in = weight_.cols, cols = end - begin;
    float* updated = updated_.as<float>().data();
    const float* feedback = factors_.feedback.as<float>().data();
    std::memcpy(updated, original_.as<float>().data() + begin * kRows, static_cast<size_t>(cols * kRows) * sizeof(float));
    if (begin > 0) {
      Multiply(1.0f, {feedback + begin, begin, cols, in}, Transpose::kYes, {error_.as<float>().data(), begin, kRows}, Transpose::kNo, 1.0f,
               {updated, cols, kRows});
    }
    for (int64_t k = begin; k < end; ++k) {
      CodeColumn(k, updated + (k - begin) * kRows);
      const float* error = error_.as<float>().data() + k * kRows;
      for (int64_t next = k + 1; next < end; ++next) {
        const float factor = feedback[k * in + next];
        float* out = updated + (next - begin) * kRows;
        for (int64_t r = 0; r < kRows; ++r) out[r] += factor * error[r];
      }
    }
  }

  // Same arithmetic as QuantizeValues, in stored codes.
  void CodeColumn(int64_t k, const float* value) {
    const int64_t group = factors_.order[k] / scales_.group_size;
    const float* scale = scale_.as<float>().data() + group * kRows;
    const float* zero_point = zero_point_.as<float>().data() + group * kRows;
    const float* original = original_.as<float>().data() + k * kRows;
    float* error = error_.as<float>().data() + k * kRows;
    uint8_t* code = code_.as<uint8_t>().data() + k * kRows;
    const float largest = static_cast<float>((1 << scales_.bits) - 1);
    for (int64_t r = 0; r < kRows; ++r) {
      const float scaled = value[r] / scale[r] + zero_point[r];
      const float at_least = scaled > 0.0f ? scaled : 0.0f;
      const float clamped = at_least < largest ? at_least : largest;
      const float rounded = (clamped + kRoundingMagic) - kRoundingMagic;
      error[r] = original[r] - (rounded - zero_point[r]) * scale[r];
      code[r] = static_cast<uint8_t>(static_cast<int32_t>(rounded));
    }
  }

  MatrixView<const float> weight_;
  const GptqFactors& factors_;
  const QuantizedTensor& scales_;
  std::vector<uint8_t>& codes_;
  Tensor original_, error_, updated_, scale_, zero_point_, code_;
};

std::vector<double> RowLosses(MatrixView<const float> weight, const QuantizedTensor& quantized, MatrixView<const float> hessian,
                              ThreadPool& pool) {
  const auto fill_error = [&](int64_t o, absl::Span<float> error) {
    quantized.DequantizeRow(o, error);
    for (int64_t i = 0; i < weight.cols; ++i) error[i] = weight.row(o)[i] - error[i];
  };
  return QuadraticForms(weight.rows, hessian, fill_error, pool);
}

// Codes in place of the nearest ones of `result.weight`, but for rows that these serve better.
void CodeAllRows(MatrixView<const float> weight, const GptqFactors& factors, GptqResult& result, ThreadPool& pool) {
  const std::vector<double> rtn_losses = RowLosses(weight, result.weight, factors.hessian, pool);
  std::vector<uint8_t> codes(result.weight.code.size());
  pool.ParallelForDynamic((weight.rows + kRows - 1) / kRows, 1, [&](int64_t begin, int64_t end, int) {
    RowCoder coder(weight, factors, result.weight, codes);
    for (int64_t job = begin; job < end; ++job) coder.CodeRows(job * kRows, std::min(kRows, weight.rows - job * kRows));
  });
  std::swap(result.weight.code, codes);
  const std::vector<double> losses = RowLosses(weight, result.weight, factors.hessian, pool);
  for (int64_t o = 0; o < weight.rows; ++o) {
    result.rtn_loss += rtn_losses[o];
    result.loss += std::min(rtn_losses[o], losses[o]);
    if (rtn_losses[o] < losses[o]) {
      ++result.rtn_rows;
      std::memcpy(&result.weight.code[o * weight.cols], &codes[o * weight.cols], static_cast<size_t>(weight.cols));
    }
  }
}

}  // namespace

absl::StatusOr<GptqFactors> FactorizeHessian(MatrixView<const float> hessian, const GptqOptions& options, ThreadPool& pool) {
  if (!(options.damping >= 0 && options.damping <= 1)) return UsageError("damping: expected 0 to 1, found ", options.damping);
  const int64_t in = hessian.rows;
  RETURN_IF_ERROR(CheckHessian("hessian", hessian, in));
  GptqFactors factors{.hessian = hessian};
  double sum = 0;
  for (int64_t i = 0; i < in; ++i) {
    factors.diagonal.push_back(hessian.row(i)[i]);
    sum += static_cast<double>(factors.diagonal.back());
    if (factors.diagonal.back() == 0) ++factors.dead_columns;
  }
  if (factors.dead_columns == in) return RefusedError("hessian: expected a column whose input was not always 0, found none of ", in);
  const double mean = sum / static_cast<double>(in - factors.dead_columns);
  factors.order = CodingOrder(factors.diagonal, options.activation_order);

  Tensor reversed(DType::kF64, {in, in});
  const MatrixView<double> matrix(reversed.as<double>().data(), in, in);
  factors.damping = options.damping;
  while (true) {
    factors.damping_term = factors.damping * mean;
    FillReversed(factors, mean, matrix, pool);
    if (FactorizeCholesky(matrix, pool) && PivotsHold({matrix.data, in, in}, kSmallestPivot * mean)) break;
    if (factors.damping >= 1) return RefusedError("hessian: expected a positive semidefinite matrix, found none with a damping of 1");
    factors.damping = std::min(1.0, std::max(2 * factors.damping, kSmallestDamping));
  }
  TakeFeedback({matrix.data, in, in}, factors, pool);
  return factors;
}

absl::StatusOr<GptqResult> SolveGptq(MatrixView<const float> weight, const GptqFactors& factors, const QuantizationArgs& args,
                                     DType scale_dtype, const GptqOptions& options, ThreadPool& pool) {
  if (args.type != QuantizationType::kInt) return NotSupportedError("gptq: expected integer codes, found ", args.num_bits, "-bit float");
  if (factors.hessian.cols != weight.cols) return UsageError("hessian: expected in=", weight.cols, ", found ", factors.hessian.cols);
  Tensor without_dead;
  if (options.zero_dead_columns && factors.dead_columns > 0) {
    RETURN_IF_ERROR(QuantizeWeight(weight, args, scale_dtype, kNoClipSearch, pool).status());  // names a weight that is not finite
    without_dead = Tensor(DType::kF32, {weight.rows, weight.cols});
    CopyWithoutDead(weight, factors.diagonal, without_dead.as<float>().data(), pool);
    weight = {without_dead.as<float>().data(), weight.rows, weight.cols};
  }
  const absl::Span<const float> importance = options.weighted_search ? absl::MakeConstSpan(factors.diagonal) : absl::Span<const float>();
  GptqResult result{.damping = factors.damping, .dead_columns = factors.dead_columns};
  ASSIGN_OR_RETURN(result.weight, QuantizeWeight(weight, args, scale_dtype, options.clip_search, pool, importance));
  CodeAllRows(weight, factors, result, pool);
  if (options.refit_scales && args.strategy != QuantizationStrategy::kTensor) {
    const ScaleRefit refit = RefitScales(weight, factors.hessian, factors.damping_term, result.weight, pool);
    result.refitted_rows = refit.rows;
    result.loss = std::max(0.0, result.loss - refit.gain);
  }
  return result;
}

absl::StatusOr<GptqResult> SolveGptq(MatrixView<const float> weight, MatrixView<const float> hessian, const QuantizationArgs& args,
                                     DType scale_dtype, const GptqOptions& options, ThreadPool& pool) {
  RETURN_IF_ERROR(CheckHessian("hessian", hessian, weight.cols));
  ASSIGN_OR_RETURN(const GptqFactors factors, FactorizeHessian(hessian, options, pool));
  return SolveGptq(weight, factors, args, scale_dtype, options, pool);
}

}  // namespace pith
