#include "compression/modifiers/scale_refit.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "compression/blas.h"
#include "quantization/qparams.h"

namespace pith {
namespace {

constexpr int64_t kRows = 64;    // rows of one job
constexpr double kRidge = 1e-6;  // of the diagonal of the normal equations

double Dot(const float* a, const float* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// Refits kRows rows at a time.
class RowRefitter {
 public:
  RowRefitter(MatrixView<const float> weight, MatrixView<const float> hessian, double damping_term, QuantizedTensor& quantized)
      : weight_(weight),
        hessian_(hessian),
        damping_term_(damping_term),
        quantized_(quantized),
        groups_(quantized.num_groups()),
        code_(DType::kF32, {kRows, weight.cols}),
        error_(DType::kF32, {kRows, weight.cols}),
        product_(DType::kF32, {kRows, weight.cols}),
        normal_(static_cast<size_t>(kRows * groups_ * groups_)),
        right_(static_cast<size_t>(kRows * groups_)) {}

  // Rows [begin, begin + count); gains[r] > 0 for those that took new scales.
  void RefitRows(int64_t begin, int64_t count, double* gains) {
    LoadRows(begin, count);
    FillRight(count);
    FillNormal(count);
    for (int64_t r = 0; r < count; ++r) gains[r] = RefitRow(begin + r, r);
  }

 private:
  MatrixView<float> View(Tensor& tensor, int64_t count) const { return {tensor.as<float>().data(), count, weight_.cols}; }
  MatrixView<const float> ConstView(const Tensor& tensor, int64_t count) const { return {tensor.as<float>().data(), count, weight_.cols}; }

  void LoadRows(int64_t begin, int64_t count) {
    const int64_t in = weight_.cols, group_size = quantized_.group_size;
    for (int64_t r = 0; r < count; ++r) {
      const int64_t o = begin + r;
      float* code = View(code_, count).row(r);
      float* error = View(error_, count).row(r);
      for (int64_t i = 0; i < in; ++i) {
        const int64_t group = o * groups_ + i / group_size;
        const int zero = quantized_.zero_point.empty() ? quantized_.default_zero_point() : quantized_.zero_point[group];
        code[i] = static_cast<float>(quantized_.code[o * in + i] - zero);
        error[i] = weight_.row(o)[i] - code[i] * quantized_.scale[group];
      }
    }
  }

  // C^T H e.
  void FillRight(int64_t count) {
    Multiply(1.0f, ConstView(error_, count), Transpose::kNo, hessian_, Transpose::kNo, 0.0f, View(product_, count));
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t g = 0; g < groups_; ++g) right_[r * groups_ + g] = GroupDot(code_, product_, r, g);
    }
  }

  // C^T H C, its lower triangle: a row of blocks of H at a time.
  void FillNormal(int64_t count) {
    const int64_t group_size = quantized_.group_size;
    for (int64_t g = 0; g < groups_; ++g) {
      const int64_t end = (g + 1) * group_size;
      const MatrixView<const float> code(code_.as<float>().data() + g * group_size, count, group_size, weight_.cols);
      Multiply(1.0f, code, Transpose::kNo, {hessian_.row(g * group_size), group_size, end, hessian_.stride}, Transpose::kNo, 0.0f,
               {product_.as<float>().data(), count, end, weight_.cols});
      for (int64_t r = 0; r < count; ++r) {
        for (int64_t h = 0; h <= g; ++h) normal_[(r * groups_ + g) * groups_ + h] = GroupDot(code_, product_, r, h);
      }
    }
  }

  double GroupDot(const Tensor& a, const Tensor& b, int64_t r, int64_t g) const {
    const int64_t offset = r * weight_.cols + g * quantized_.group_size;
    return Dot(a.as<float>().data() + offset, b.as<float>().data() + offset, quantized_.group_size);
  }

  // How far the loss falls with `delta`: 2 delta^T right - delta^T normal delta.
  double Gain(const std::vector<double>& delta, const double* normal, const double* right) const {
    double gain = 0;
    for (int64_t g = 0; g < groups_; ++g) {
      double row = normal[g * groups_ + g] * delta[g];
      for (int64_t h = 0; h < g; ++h) row += 2 * normal[g * groups_ + h] * delta[h];
      gain += delta[g] * (2 * right[g] - row);
    }
    return gain;
  }

  // Row r of those loaded, which is row o. The gain of new scales, or 0 when it keeps the old ones.
  double RefitRow(int64_t o, int64_t r) {
    const double* normal = &normal_[r * groups_ * groups_];
    const double* right = &right_[r * groups_];
    float* scale = &quantized_.scale[o * groups_];
    std::vector<double> damping(static_cast<size_t>(groups_)), damped_right(right, right + groups_);
    std::vector<double> damped(normal, normal + groups_ * groups_);
    for (int64_t g = 0; g < groups_; ++g) {
      damping[g] = damping_term_ * GroupDot(code_, code_, r, g);
      damped_right[g] += damping_term_ * GroupDot(code_, error_, r, g);
      damped[g * groups_ + g] += damping[g];
    }
    std::vector<double> ridged = damped, delta = damped_right;
    for (int64_t g = 0; g < groups_; ++g) {
      double& diagonal = ridged[g * groups_ + g];
      diagonal = diagonal > 0 ? diagonal * (1 + kRidge) : 1;  // a group of zeros has no scale to fit
    }
    if (!SolvePositiveDefinite({ridged.data(), groups_, groups_}, absl::MakeSpan(delta))) return 0;
    std::vector<float> refitted(static_cast<size_t>(groups_));
    for (int64_t g = 0; g < groups_; ++g) {
      refitted[g] = RoundToDType(static_cast<float>(static_cast<double>(scale[g]) + delta[g]), quantized_.scale_dtype);
      if (!(refitted[g] > 0) || !std::isfinite(refitted[g])) refitted[g] = scale[g];
      delta[g] = static_cast<double>(refitted[g]) - static_cast<double>(scale[g]);
    }
    const double gain = Gain(delta, normal, right);
    if (!(gain > 0) || !(Gain(delta, damped.data(), damped_right.data()) > 0)) return 0;
    std::copy(refitted.begin(), refitted.end(), scale);
    return gain;
  }

  MatrixView<const float> weight_, hessian_;
  double damping_term_;
  QuantizedTensor& quantized_;
  int64_t groups_;
  Tensor code_, error_, product_;       // [kRows, in]
  std::vector<double> normal_, right_;  // [kRows, groups, groups], [kRows, groups]
};

}  // namespace

ScaleRefit RefitScales(MatrixView<const float> weight, MatrixView<const float> hessian, double damping_term, QuantizedTensor& quantized,
                       ThreadPool& pool) {
  CHECK(weight.rows == quantized.out && weight.cols == quantized.in && hessian.rows == weight.cols && hessian.cols == weight.cols);
  CHECK(quantized.type == QuantizationType::kInt && quantized.min.empty());
  std::vector<double> gains(static_cast<size_t>(weight.rows));
  pool.ParallelForDynamic((weight.rows + kRows - 1) / kRows, 1, [&](int64_t begin, int64_t end, int) {
    RowRefitter refitter(weight, hessian, damping_term, quantized);
    for (int64_t job = begin; job < end; ++job) {
      refitter.RefitRows(job * kRows, std::min(kRows, weight.rows - job * kRows), &gains[job * kRows]);
    }
  });
  ScaleRefit result;
  for (const double gain : gains) {
    result.rows += gain > 0;
    result.gain += gain;
  }
  return result;
}

}  // namespace pith
