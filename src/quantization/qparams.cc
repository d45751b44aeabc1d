#include "quantization/qparams.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/cpu_features.h"
#include "base/float_types.h"
#include "quantization/cpu/clip_error.h"
#include "quantization/cpu/clip_error_lanes.h"

namespace pith {
namespace {

using Lanes = FourLanes::Floats;
using IntLanes = FourLanes::Ints;
typedef uint8_t ByteLanes __attribute__((vector_size(4)));
constexpr size_t kLanes = FourLanes::kCount;

// The last values of a group, padded with zeros.
Lanes LoadTail(absl::Span<const float> values) {
  Lanes lanes = {};
  std::memcpy(&lanes, values.data(), values.size() * sizeof(float));
  return lanes;
}

float Sum(Lanes a) { return (a[0] + a[2]) + (a[1] + a[3]); }

// What a group is coded with, one value per lane.
struct CodeLanes {
  CodeLanes(const QParams& qparams, const QuantizationArgs& args)
      : scale(FourLanes::Broadcast(qparams.scale)),
        zero_point(FourLanes::Broadcast(static_cast<float>(qparams.zero_point))),
        min_code(FourLanes::Broadcast(static_cast<float>(args.min_code()))),
        max_code(FourLanes::Broadcast(static_cast<float>(args.max_code()))) {}

  Lanes Code(Lanes values) const {
    return RoundLanes<FourLanes>(FourLanes::Min(FourLanes::Max(values / scale + zero_point, min_code), max_code));
  }

  Lanes scale, zero_point, min_code, max_code;
};

// The widest vectors of this CPU that PITH_FORCE_ISA allows; all give the same bits.
ClipErrorFunction ChooseClipError() {
  const Isa isa = SelectIsa().value_or(DetectIsa());
  return isa >= Isa::kAvx512 ? clip_error_f32__avx512 : isa >= Isa::kAvx2 ? clip_error_f32__avx2 : clip_error_f32__scalar;
}

// The sum of clip_error.h over a group, or any larger number than `limit` once it exceeds `limit`.
double NormalizedErrorSum(absl::Span<const float> values, absl::Span<const float> importance, const QParams& qparams,
                          const QuantizationArgs& args, float exponent, double limit) {
  static const ClipErrorFunction clip_error = ChooseClipError();
  DCHECK(importance.empty() || importance.size() == values.size());
  return clip_error({.values = values.data(),
                     .importance = importance.empty() ? nullptr : importance.data(),
                     .count = static_cast<int64_t>(values.size()),
                     .inverse_scale = 1.0f / qparams.scale,
                     .zero_point = static_cast<float>(qparams.zero_point),
                     .min_code = static_cast<float>(args.min_code()),
                     .max_code = static_cast<float>(args.max_code()),
                     .exponent = exponent,
                     .limit = limit});
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
    low = FourLanes::Min(lanes, low);
    high = FourLanes::Max(lanes, high);
    poison += lanes * 0.0f;
  };
  for (; i + kLanes <= values.size(); i += kLanes) add(FourLanes::Load(&values[i]));
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
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double normalized = NormalizedErrorSum(values, importance, qparams, args, static_cast<float>(norm), kInfinity);
  return normalized * std::pow(static_cast<double>(qparams.scale), norm);
}

QParams SearchQParams(absl::Span<const float> values, WeightRange range, const QuantizationArgs& args, DType scale_dtype,
                      const ClipSearch& search, absl::Span<const float> importance) {
  QParams best = ComputeQParams(range, args, scale_dtype);
  const int num_candidates = search.num_candidates();
  if (num_candidates == 1 || args.type == QuantizationType::kFloat) return best;
  const float exponent = static_cast<float>(search.norm);
  const float widest_scale = best.scale;  // errors are compared in units of widest_scale^norm
  double best_error = NormalizedErrorSum(values, importance, best, args, exponent, std::numeric_limits<double>::infinity());
  constexpr int kBlock = static_cast<int>(kLanes);
  for (int first = 1; first < num_candidates; first += kBlock) {
    const int count = std::min(kBlock, num_candidates - first);
    QParams candidates[kBlock];
    Lanes ratio = FourLanes::Broadcast(1.0f);
    for (int j = 0; j < count; ++j) {
      const float p = 1.0f - static_cast<float>(first + j) / static_cast<float>(search.grid);
      candidates[j] = ComputeQParams({range.min * p, range.max * p}, args, scale_dtype);
      ratio[j] = candidates[j].scale / widest_scale;
    }
    const Lanes units = PowerLanes<FourLanes>(ratio, FourLanes::Broadcast(exponent));
    for (int j = 0; j < count; ++j) {
      const double unit = static_cast<double>(units[j]);
      const double error = NormalizedErrorSum(values, importance, candidates[j], args, exponent, best_error / unit) * unit;
      if (error < best_error) {
        best_error = error;
        best = candidates[j];
      }
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
    const ByteLanes bytes = __builtin_convertvector(__builtin_convertvector(code.Code(lanes), IntLanes) + offset, ByteLanes);
    std::memcpy(out, &bytes, count);
  };
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) store(FourLanes::Load(&values[i]), &codes[i], kLanes);
  if (i < values.size()) store(LoadTail(values.subspan(i)), &codes[i], values.size() - i);
}

}  // namespace pith
