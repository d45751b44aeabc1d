#include "quantization/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.h"

namespace pith {
namespace {

struct ErrorSums {
  double signal = 0, noise = 0, max_abs_error = 0;

  void Add(absl::Span<const float> original, absl::Span<const float> approximation) {
    CHECK_EQ(original.size(), approximation.size());
    for (size_t i = 0; i < original.size(); ++i) {
      const double value = original[i];
      const double error = static_cast<double>(approximation[i]) - value;
      signal += value * value;
      noise += error * error;
      max_abs_error = std::max(max_abs_error, std::fabs(error));
    }
  }

  ErrorStatistics Statistics() const {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (noise == 0) return {.relative_error = 0, .sqnr_db = kInfinity, .max_abs_error = 0};
    if (signal == 0) return {.relative_error = kInfinity, .sqnr_db = -kInfinity, .max_abs_error = max_abs_error};
    const double relative = std::sqrt(noise / signal);
    return {.relative_error = relative, .sqnr_db = -20 * std::log10(relative), .max_abs_error = max_abs_error};
  }
};

}  // namespace

int QuantizeValue(float value, const QParams& qparams, const QuantizationArgs& args) {
  const float scaled = value / qparams.scale + static_cast<float>(qparams.zero_point);
  const float clamped = std::clamp(scaled, static_cast<float>(args.min_code()), static_cast<float>(args.max_code()));
  return static_cast<int>(std::nearbyint(clamped));
}

float DequantizeValue(int code, const QParams& qparams) { return static_cast<float>(code - qparams.zero_point) * qparams.scale; }

ErrorStatistics CompareValues(absl::Span<const float> original, absl::Span<const float> approximation) {
  ErrorSums sums;
  sums.Add(original, approximation);
  return sums.Statistics();
}

ErrorStatistics CompareWeights(MatrixView<const float> original, const QuantizedTensor& quantized) {
  CHECK(original.rows == quantized.out && original.cols == quantized.in);
  ErrorSums sums;
  std::vector<float> row(static_cast<size_t>(quantized.in));
  for (int64_t o = 0; o < quantized.out; ++o) {
    quantized.DequantizeRow(o, absl::MakeSpan(row));
    sums.Add({original.row(o), row.size()}, row);
  }
  return sums.Statistics();
}

}  // namespace pith
