// For tests only: random weight matrices, dense or quantized, that know the exact values they stand for.
#pragma once

#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/float_types.h"
#include "base/random.h"
#include "nn/data_path.h"
#include "nn/linear.h"
#include "quantization/quantized_tensor.h"
#include "tensor/tensor.h"

namespace pith {

struct TestMatrix {
  std::string name;
  int64_t out = 0, in = 0;
  std::vector<float> values;  // [out, in] what a kernel has to multiply by (dense: rounded to bf16)
  std::shared_ptr<Tensor> dense;
  TensorView view;
  std::optional<QuantizedTensor> quantized;
  int64_t stored_bytes = 0;
  std::optional<InputQuantization> input;

  LinearSource Source(std::vector<float> bias = {}) const {
    return {.name = name,
            .dense = quantized.has_value() ? nullptr : &view,
            .quantized = quantized.has_value() ? &*quantized : nullptr,
            .input = input,
            .bias = std::move(bias),
            .stored_bytes = stored_bytes};
  }
};

inline TestMatrix RandomDense(const std::string& name, int64_t out, int64_t in, uint64_t seed, DType dtype = DType::kBF16) {
  TestMatrix m{.name = name,
               .out = out,
               .in = in,
               .dense = std::make_shared<Tensor>(dtype, std::initializer_list<int64_t>{out, in}),
               .stored_bytes = out * in * ByteSize(dtype)};
  RandomStream random(seed);
  for (int64_t i = 0; i < out * in; ++i) {
    const float value = random.Normal();
    float stored = value;
    if (dtype == DType::kBF16) {
      m.dense->as<bfloat16>()[i] = ToBfloat16(value);
    } else if (dtype == DType::kF16) {
      m.dense->as<float16>()[i] = ToFloat16(value);
      stored = ToFloat(ToFloat16(value));
    } else {
      m.dense->as<float>()[i] = value;
    }
    m.values.push_back(RoundToBfloat16(stored));
  }
  m.view = m.dense->view();
  return m;
}

enum class TestOffset { kSymmetric, kZeroPoint, kMin };

inline TestMatrix RandomQuantized(const std::string& name, int64_t out, int64_t in, int bits, int64_t group_size, TestOffset offset,
                                  uint64_t seed, const std::string& format = "pack-quantized") {
  TestMatrix m{.name = name, .out = out, .in = in, .stored_bytes = out * in * bits / 8};
  QuantizedTensor q{.out = out,
                    .in = in,
                    .bits = bits,
                    .group_size = group_size,
                    .format = format,
                    .scale_dtype = DType::kBF16,
                    .stored_bits_per_weight = bits + 16.0 / static_cast<double>(group_size)};
  RandomStream random(seed);
  const uint64_t codes = uint64_t{1} << bits;
  for (int64_t i = 0; i < out * in; ++i) q.code.push_back(static_cast<uint8_t>(random.Below(codes)));
  for (int64_t i = 0; i < out * q.num_groups(); ++i) {
    q.scale.push_back(RoundToBfloat16(static_cast<float>((0.5 + random.Uniform()) / static_cast<double>(codes))));
    if (offset == TestOffset::kZeroPoint) q.zero_point.push_back(static_cast<uint8_t>(random.Below(codes)));
    if (offset == TestOffset::kMin) q.min.push_back(RoundToBfloat16(static_cast<float>(random.Uniform())));
  }
  m.values.resize(out * in);
  for (int64_t o = 0; o < out; ++o) q.DequantizeRow(o, absl::MakeSpan(m.values).subspan(o * in, in));
  m.quantized = std::move(q);
  return m;
}

// 8-bit codes per channel with columns kept beside them, of other weights than the codes say, for an input of fixed outliers.
inline TestMatrix RandomWithOutlierColumns(const std::string& name, int64_t out, int64_t in, const std::vector<int32_t>& columns,
                                           uint64_t seed) {
  TestMatrix m = RandomQuantized(name, out, in, 8, in, TestOffset::kSymmetric, seed, "bitsandbytes");
  RandomStream random(seed, 1);
  m.quantized->outlier_column = columns;
  for (size_t i = 0; i < static_cast<size_t>(out) * columns.size(); ++i) {
    m.quantized->outlier_weight.push_back(ToBfloat16(static_cast<float>(random.Normal())));
  }
  for (int64_t o = 0; o < out; ++o) m.quantized->DequantizeRow(o, absl::MakeSpan(m.values).subspan(o * in, in));
  m.input = InputQuantization{
      .args = {.strategy = QuantizationStrategy::kToken, .dynamic = true, .outlier_threshold = 6.0f, .fixed_outliers = true},
      .outlier_columns = columns};
  return m;
}

// e4m3 codes, none of them NaN.
inline TestMatrix RandomFp8(const std::string& name, int64_t out, int64_t in, int64_t group_size, uint64_t seed) {
  TestMatrix m = RandomQuantized(name, out, in, 8, group_size, TestOffset::kSymmetric, seed, "float-quantized");
  QuantizedTensor& q = *m.quantized;
  q.type = QuantizationType::kFloat;
  for (uint8_t& code : q.code) {
    if ((code & 0x7F) == 0x7F) code = 0;
  }
  for (int64_t o = 0; o < out; ++o) q.DequantizeRow(o, absl::MakeSpan(m.values).subspan(o * in, in));
  return m;
}

inline std::vector<uint16_t> RandomActivations(int64_t count, uint64_t seed) {
  RandomStream random(seed);
  std::vector<uint16_t> bits(count);
  for (uint16_t& b : bits) b = ToBfloat16(random.Normal()).bits;
  return bits;
}

// Rows of bf16 bits, `stride` elements apart, in every form that `linear` wants, and in bf16.
inline LinearInput MakeInput(const ComputeContext& context, const Linear& linear, const uint16_t* rows, int64_t m, int64_t stride) {
  LinearInput input;
  input.Prepare(linear.formats(), m, linear.in(), /*keep_bf16=*/true);
  input.StoreBf16(context, 0, m, rows, stride);
  return input;
}

// sum_i a[i] * w[o][i] in double, and the sum of the absolute products, which scales every rounding error.
struct DotProduct {
  double value = 0, magnitude = 0;
};
inline DotProduct ReferenceDot(const TestMatrix& m, int64_t o, const uint16_t* activation) {
  DotProduct dot;
  for (int64_t i = 0; i < m.in; ++i) {
    const double product = static_cast<double>(m.values[o * m.in + i]) * ToFloat(bfloat16{activation[i]});
    dot.value += product;
    dot.magnitude += std::fabs(product);
  }
  return dot;
}

}  // namespace pith
