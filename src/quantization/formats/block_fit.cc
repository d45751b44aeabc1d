#include "quantization/formats/block_fit.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace pith {
namespace {

constexpr int kMaxCount = 32;
constexpr int kRefinements = 4;

// Sums that decide the best factors for codes q.
struct Moments {
  float w = 0, x = 0, q = 0, qq = 0, xq = 0;
};

Moments SumMoments(const float* x, const float* weight, const float* q, int count) {
  Moments sums;
  for (int i = 0; i < count; ++i) {
    const float wq = weight[i] * q[i];
    sums.w += weight[i];
    sums.x += weight[i] * x[i];
    sums.q += wq;
    sums.qq += wq * q[i];
    sums.xq += wq * x[i];
  }
  return sums;
}

AffineFit SolveAffine(const Moments& s) {
  const float determinant = s.w * s.qq - s.q * s.q;
  if (!(determinant > 0)) return {};
  AffineFit fit{(s.w * s.xq - s.x * s.q) / determinant, -(s.qq * s.x - s.q * s.xq) / determinant};
  if (fit.min < 0) fit = {s.qq > 0 ? s.xq / s.qq : 0.0f, 0.0f};
  if (fit.scale < 0) fit.scale = 0;
  return fit;
}

void QuantizeAffine(const float* x, int count, int max_code, float inverse, float offset, float* q) {
  const float top = static_cast<float>(max_code);
  for (int i = 0; i < count; ++i) q[i] = std::min(std::max(RoundSmall(inverse * (x[i] + offset)), 0.0f), top);
}

float AffineError(const float* x, const float* weight, const float* q, int count, AffineFit fit) {
  float error = 0;
  for (int i = 0; i < count; ++i) {
    const float difference = fit.scale * q[i] - fit.min - x[i];
    error += weight[i] * difference * difference;
  }
  return error;
}

void QuantizeSymmetric(const float* x, int count, int zero, float inverse, float* q) {
  const float bottom = static_cast<float>(-zero), top = static_cast<float>(zero - 1);
  for (int i = 0; i < count; ++i) q[i] = std::min(std::max(RoundSmall(inverse * x[i]), bottom), top);
}

}  // namespace

AffineFit FitAffine(const float* x, const float* weight, int count, int max_code) {
  CHECK_LE(count, kMaxCount);
  float low = 0, high = x[0];
  for (int i = 0; i < count; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  if (!(high > low)) return {0, -low};
  float q[kMaxCount];
  AffineFit best{(high - low) / static_cast<float>(max_code), -low};
  QuantizeAffine(x, count, max_code, 1 / best.scale, best.min, q);
  float best_error = AffineError(x, weight, q, count, best);
  const auto consider = [&] {
    const AffineFit fit = SolveAffine(SumMoments(x, weight, q, count));
    if (!(fit.scale > 0)) return false;
    const float error = AffineError(x, weight, q, count, fit);
    if (!(error < best_error)) return false;
    best = fit;
    best_error = error;
    return true;
  };
  // Ranges a little wider than the numbers', and with ends cut off for the others' sake: scale and phase of the grid both matter.
  constexpr float kCuts[] = {-0.04f, -0.02f, 0.0f, 0.02f, 0.045f, 0.07f, 0.1f, 0.14f, 0.19f, 0.25f};
  for (const float below : kCuts) {
    for (const float above : kCuts) {
      const float range = (1 - below - above) * (high - low);
      QuantizeAffine(x, count, max_code, static_cast<float>(max_code) / range, -low - below * (high - low), q);
      consider();
    }
  }
  for (int i = 0; i < kRefinements; ++i) {
    QuantizeAffine(x, count, max_code, 1 / best.scale, best.min, q);
    if (!consider()) break;
  }
  return best;
}

float FitSymmetric(const float* x, const float* weight, int count, int zero) {
  CHECK_LE(count, kMaxCount);
  float extreme = 0;
  for (int i = 0; i < count; ++i) {
    if (std::abs(x[i]) > std::abs(extreme)) extreme = x[i];
  }
  if (extreme == 0) return 0;
  float q[kMaxCount];
  float best = -extreme / static_cast<float>(zero), best_gain = -1;
  const auto consider = [&] {
    const Moments sums = SumMoments(x, weight, q, count);
    if (!(sums.qq > 0)) return false;
    const float gain = sums.xq * sums.xq / sums.qq;  // how much of sum w x^2 the best scale explains
    if (!(gain > best_gain)) return false;
    best_gain = gain;
    best = sums.xq / sums.qq;
    return true;
  };
  constexpr int kFirst = -12, kLast = 12, kBeyond = 18;
  for (int sign = -1; sign <= 1; sign += 2) {  // the extreme on the side of 2^(b-1) codes, or of one less
    for (int step = kFirst; step <= kBeyond; ++step) {
      // Finely around the scale that uses the whole range, coarsely up to where an extreme of little weight is cut off by a third.
      const float full = static_cast<float>(zero);
      const float codes = step <= kLast ? full + 0.1f * static_cast<float>(step) : full * (1 + 0.08f * static_cast<float>(step - kLast));
      QuantizeSymmetric(x, count, zero, static_cast<float>(sign) * codes / extreme, q);
      consider();
    }
  }
  for (int i = 0; i < kRefinements && best != 0; ++i) {
    QuantizeSymmetric(x, count, zero, 1 / best, q);
    if (!consider()) break;
  }
  return best;
}

float CodeAffine(const float* x, const float* weight, int count, int max_code, AffineFit fit, uint8_t* code) {
  float q[kMaxCount] = {};
  if (fit.scale > 0) QuantizeAffine(x, count, max_code, 1 / fit.scale, fit.min, q);
  for (int i = 0; i < count; ++i) code[i] = static_cast<uint8_t>(q[i]);
  return AffineError(x, weight, q, count, fit);
}

float CodeSymmetric(const float* x, const float* weight, int count, int zero, float scale, uint8_t* code) {
  float q[kMaxCount] = {};
  if (scale != 0) QuantizeSymmetric(x, count, zero, 1 / scale, q);
  float error = 0;
  for (int i = 0; i < count; ++i) {
    const float difference = scale * q[i] - x[i];
    error += weight[i] * difference * difference;
    code[i] = static_cast<uint8_t>(static_cast<int>(q[i]) + zero);
  }
  return error;
}

}  // namespace pith
