#include "quantization/quantized_tensor.h"

#include "base/float_types.h"

namespace pith {

void QuantizedTensor::DequantizeRow(int64_t o, absl::Span<float> out_row) const {
  CHECK_EQ(static_cast<int64_t>(out_row.size()), in);
  const int64_t groups = num_groups();
  for (int64_t g = 0; g < groups; ++g) {
    const float s = scale[o * groups + g];
    const uint8_t* codes = code.data() + o * in + g * group_size;
    float* row = out_row.data() + g * group_size;
    if (type == QuantizationType::kFloat) {
      for (int64_t i = 0; i < group_size; ++i) row[i] = s * ToFloat(float8_e4m3fn{codes[i]});
    } else if (!min.empty()) {
      const float m = min[o * groups + g];
      for (int64_t i = 0; i < group_size; ++i) row[i] = s * static_cast<float>(codes[i]) - m;
    } else {
      const int zero = zero_point.empty() ? default_zero_point() : zero_point[o * groups + g];
      for (int64_t i = 0; i < group_size; ++i) row[i] = s * static_cast<float>(static_cast<int>(codes[i]) - zero);
    }
  }
  const size_t outliers = outlier_column.size();
  for (size_t c = 0; c < outliers; ++c) out_row[outlier_column[c]] = ToFloat(outlier_weight[o * outliers + c]);
}

}  // namespace pith
