#include "quantization/qparams.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/float_types.h"

namespace pith {
namespace {

// Four floats per operation, in the compiler's portable vector types: the search visits every weight twenty times.
// Lanes are summed in one fixed order, so results depend on neither compiler nor machine.
typedef float Lanes __attribute__((vector_size(16)));
typedef int32_t IntLanes __attribute__((vector_size(16)));
constexpr size_t kLanes = 4;

Lanes Broadcast(float value) { return Lanes{value, value, value, value}; }

Lanes Load(const float* values) {
  Lanes lanes;
  std::memcpy(&lanes, values, sizeof(lanes));
  return lanes;
}

// The last values of a group, padded with zeros.
Lanes LoadTail(absl::Span<const float> values) {
  Lanes lanes = {};
  std::memcpy(&lanes, values.data(), values.size() * sizeof(float));
  return lanes;
}

Lanes Min(Lanes a, Lanes b) { return a < b ? a : b; }
Lanes Max(Lanes a, Lanes b) { return a > b ? a : b; }
float Sum(Lanes a) { return (a[0] + a[2]) + (a[1] + a[3]); }

Lanes Abs(Lanes a) { return std::bit_cast<Lanes>(std::bit_cast<IntLanes>(a) & 0x7FFFFFFF); }

// Nearest integer, ties to even, for |a| < 2^22: the addition rounds at the last bit of 1.5 * 2^23.
Lanes Round(Lanes a) {
  const Lanes magic = Broadcast(12582912.0f);
  return (a + magic) - magic;
}

// base^exponent for base >= 0, relative error below 5e-5; bases under 2^-126 count as 2^-127.
// 2^(exponent * log2 base): log2(1 + m) is m times a polynomial on [0, 1], 2^f one on [-1/2, 1/2] (Chebyshev fits).
Lanes Power(Lanes base, Lanes exponent) {
  const IntLanes bits = std::bit_cast<IntLanes>(base);
  const Lanes whole = __builtin_convertvector((bits >> 23) - 127, Lanes);
  const Lanes m = std::bit_cast<Lanes>((bits & 0x007FFFFF) | 0x3F800000) - 1.0f;
  const Lanes log2_over_m = ((((m * -0.03459521f + 0.14643362f) * m - 0.30338967f) * m + 0.4693016f) * m - 0.72044235f) * m + 1.44268322f;
  const Lanes y = Max((whole + m * log2_over_m) * exponent, Broadcast(-126.0f));
  const Lanes rounded = Round(y);
  const Lanes f = y - rounded;
  const Lanes fraction = (((f * 0.009676037f + 0.05592203f) * f + 0.24022107f) * f + 0.69312102f) * f + 1.0f;
  return std::bit_cast<Lanes>(std::bit_cast<IntLanes>(fraction) + (__builtin_convertvector(rounded, IntLanes) << 23));
}

// What a group's codes are computed with, one value per lane.
struct CodeLanes {
  CodeLanes(const QParams& qparams, const QuantizationArgs& args)
      : scale(Broadcast(qparams.scale)),
        inverse_scale(Broadcast(1.0f / qparams.scale)),
        zero_point(Broadcast(static_cast<float>(qparams.zero_point))),
        min_code(Broadcast(static_cast<float>(args.min_code()))),
        max_code(Broadcast(static_cast<float>(args.max_code()))) {}

  Lanes Clamp(Lanes code) const { return Min(Max(code, min_code), max_code); }

  Lanes scale, inverse_scale, zero_point, min_code, max_code;
};

// |w - dequantized| / scale, to the power.
Lanes NormalizedError(Lanes values, const CodeLanes& code, Lanes exponent) {
  const Lanes scaled = values * code.inverse_scale + code.zero_point;
  return Power(Abs(Round(code.Clamp(scaled)) - scaled), exponent);
}

// NormalizedError of the values from i on, times their importance where there is one.
template <bool kWeighted>
Lanes ErrorAt(absl::Span<const float> values, absl::Span<const float> importance, size_t i, const CodeLanes& code, Lanes exponent) {
  const Lanes error = NormalizedError(Load(&values[i]), code, exponent);
  return kWeighted ? error * Load(&importance[i]) : error;
}

// Sum of NormalizedError over a group, or any larger number than `limit` once it exceeds `limit`.
template <bool kWeighted>
double NormalizedErrorSum(absl::Span<const float> values, absl::Span<const float> importance, const CodeLanes& code, Lanes exponent,
                          double limit) {
  constexpr size_t kChunk = 8 * kLanes;
  double sum = 0;
  size_t i = 0;
  for (; i + kChunk <= values.size(); i += kChunk) {
    Lanes even = {}, odd = {};
    for (size_t j = i; j < i + kChunk; j += 2 * kLanes) {
      even += ErrorAt<kWeighted>(values, importance, j, code, exponent);
      odd += ErrorAt<kWeighted>(values, importance, j + kLanes, code, exponent);
    }
    sum += static_cast<double>(Sum(even + odd));
    if (sum > limit) return sum;
  }
  Lanes rest = {};
  for (; i + kLanes <= values.size(); i += kLanes) rest += ErrorAt<kWeighted>(values, importance, i, code, exponent);
  if (i < values.size()) {
    // A padding zero is coded exactly.
    const Lanes error = NormalizedError(LoadTail(values.subspan(i)), code, exponent);
    rest += kWeighted ? error * LoadTail(importance.subspan(i)) : error;
  }
  return sum + static_cast<double>(Sum(rest));
}

double NormalizedErrorSum(absl::Span<const float> values, absl::Span<const float> importance, const CodeLanes& code, Lanes exponent,
                          double limit) {
  if (importance.empty()) return NormalizedErrorSum<false>(values, importance, code, exponent, limit);
  DCHECK(importance.size() == values.size());
  return NormalizedErrorSum<true>(values, importance, code, exponent, limit);
}

constexpr float kLargestE4M3 = 448.0f;

float Epsilon(DType dtype) {
  switch (dtype) {
    case DType::kBF16: return 0x1p-7f;
    case DType::kF16: return 0x1p-10f;
    default: return std::numeric_limits<float>::epsilon();
  }
}

}  // namespace

int ClipSearch::num_candidates() const { return std::max(1, static_cast<int>(max_shrink * grid)); }

bool FindRange(absl::Span<const float> values, WeightRange& range) {
  Lanes low = {}, high = {}, poison = {};  // 0 * x is 0 for finite x and NaN for any other
  size_t i = 0;
  const auto add = [&](Lanes lanes) {
    low = Min(lanes, low);
    high = Max(lanes, high);
    poison += lanes * 0.0f;
  };
  for (; i + kLanes <= values.size(); i += kLanes) add(Load(&values[i]));
  if (i < values.size()) add(LoadTail(values.subspan(i)));
  range.min = std::min(std::min(low[0], low[1]), std::min(low[2], low[3]));
  range.max = std::max(std::max(high[0], high[1]), std::max(high[2], high[3]));
  return Sum(poison) == 0.0f;
}

float RoundToDType(float value, DType dtype) {
  switch (dtype) {
    case DType::kBF16: return RoundToBfloat16(value);
    case DType::kF16: return ToFloat(ToFloat16(value));
    default: CHECK(dtype == DType::kF32); return value;
  }
}

QParams ComputeQParams(WeightRange range, const QuantizationArgs& args, DType scale_dtype) {
  const float steps = static_cast<float>(args.max_code() - args.min_code());
  const float width = args.symmetric ? std::max(-range.min, range.max) : range.max - range.min;
  const float exact_scale = width / (args.type == QuantizationType::kFloat ? kLargestE4M3 : args.symmetric ? steps / 2 : steps);
  QParams qparams;
  qparams.scale = RoundToDType(exact_scale, scale_dtype);
  if (qparams.scale == 0.0f) qparams.scale = Epsilon(scale_dtype);
  if (!args.symmetric) {
    const float zero = static_cast<float>(args.min_code()) - (exact_scale == 0.0f ? 0.0f : range.min / exact_scale);
    const float clamped = std::clamp(zero, static_cast<float>(args.min_code()), static_cast<float>(args.max_code()));
    qparams.zero_point = static_cast<int>(std::nearbyint(clamped));
  }
  return qparams;
}

double ClipError(absl::Span<const float> values, const QParams& qparams, const QuantizationArgs& args, double norm,
                 absl::Span<const float> importance) {
  const Lanes exponent = Broadcast(static_cast<float>(norm));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double normalized = NormalizedErrorSum(values, importance, CodeLanes(qparams, args), exponent, kInfinity);
  return normalized * std::pow(static_cast<double>(qparams.scale), norm);
}

QParams SearchQParams(absl::Span<const float> values, WeightRange range, const QuantizationArgs& args, DType scale_dtype,
                      const ClipSearch& search, absl::Span<const float> importance) {
  QParams best = ComputeQParams(range, args, scale_dtype);
  const int candidates = search.num_candidates();
  if (candidates == 1 || args.type == QuantizationType::kFloat) return best;
  const Lanes exponent = Broadcast(static_cast<float>(search.norm));
  const float widest_scale = best.scale;  // errors are compared in units of widest_scale^norm
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double best_error = NormalizedErrorSum(values, importance, CodeLanes(best, args), exponent, kInfinity);
  for (int i = 1; i < candidates; ++i) {
    const float p = 1.0f - static_cast<float>(i) / static_cast<float>(search.grid);
    const QParams candidate = ComputeQParams({range.min * p, range.max * p}, args, scale_dtype);
    const double unit = static_cast<double>(Power(Broadcast(candidate.scale / widest_scale), exponent)[0]);
    const double error = NormalizedErrorSum(values, importance, CodeLanes(candidate, args), exponent, best_error / unit) * unit;
    if (error < best_error) {
      best_error = error;
      best = candidate;
    }
  }
  return best;
}

void QuantizeValues(absl::Span<const float> values, const QParams& qparams, const QuantizationArgs& args, absl::Span<uint8_t> codes) {
  CHECK_EQ(values.size(), codes.size());
  if (args.type == QuantizationType::kFloat) {
    for (size_t i = 0; i < values.size(); ++i) codes[i] = ToFloat8E4M3(values[i] / qparams.scale).bits;
    return;
  }
  const CodeLanes code(qparams, args);
  const int offset = -args.min_code();
  const auto store = [&](Lanes lanes, uint8_t* out, size_t count) {
    const IntLanes rounded = __builtin_convertvector(Round(code.Clamp(lanes / code.scale + code.zero_point)), IntLanes) + offset;
    for (size_t j = 0; j < count; ++j) out[j] = static_cast<uint8_t>(rounded[j]);
  };
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) store(Load(&values[i]), &codes[i], kLanes);
  if (i < values.size()) store(LoadTail(values.subspan(i)), &codes[i], values.size() - i);
}

}  // namespace pith
