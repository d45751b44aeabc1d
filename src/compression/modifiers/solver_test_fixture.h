// For tests of the solvers: random layers with correlated inputs, and losses summed in double the plain way.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "base/thread_pool.h"
#include "compression/modifiers/hessian.h"
#include "quantization/quantized_tensor.h"
#include "tensor/tensor.h"

namespace pith {

struct TestMatrix {
  TestMatrix(int64_t rows, int64_t cols) : rows(rows), cols(cols), values(static_cast<size_t>(rows * cols)) {}
  MatrixView<const float> view() const { return {values.data(), rows, cols}; }
  float* row(int64_t r) { return &values[static_cast<size_t>(r * cols)]; }
  const float* row(int64_t r) const { return &values[static_cast<size_t>(r * cols)]; }

  int64_t rows, cols;
  std::vector<float> values;
};

inline TestMatrix RandomMatrix(int64_t rows, int64_t cols, uint64_t seed) {
  TestMatrix matrix(rows, cols);
  RandomStream random(seed);
  for (float& value : matrix.values) value = random.Normal();
  return matrix;
}

// Rows whose columns share `factors` hidden causes and differ in size, every seventh ten times as large: like activations of a language
// model, a few columns dominate.
inline TestMatrix CorrelatedRows(int64_t rows, int64_t cols, uint64_t seed, int64_t factors = 8) {
  TestMatrix matrix = RandomMatrix(rows, cols, seed);
  const TestMatrix causes = RandomMatrix(rows, factors, seed + 1000), loads = RandomMatrix(factors, cols, seed + 2000);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      float& value = matrix.row(r)[c];
      value *= 0.3f;
      for (int64_t f = 0; f < factors; ++f) value += causes.row(r)[f] * loads.row(f)[c];
      value *= (c % 7 == 3 ? 10.0f : 1.0f) * (0.2f + static_cast<float>(c % 5) * 0.3f);
    }
  }
  return matrix;
}

// H of the rows, (2/n) sum x x^T, in double.
inline TestMatrix PlainHessian(const TestMatrix& rows) {
  TestMatrix hessian(rows.cols, rows.cols);
  for (int64_t i = 0; i < rows.cols; ++i) {
    for (int64_t j = 0; j < rows.cols; ++j) {
      double sum = 0;
      for (int64_t r = 0; r < rows.rows; ++r) sum += static_cast<double>(rows.row(r)[i]) * static_cast<double>(rows.row(r)[j]);
      hessian.row(i)[j] = static_cast<float>(sum * 2 / static_cast<double>(rows.rows));
    }
  }
  return hessian;
}

// The dequantized weight.
inline TestMatrix Dequantize(const QuantizedTensor& quantized) {
  TestMatrix weight(quantized.out, quantized.in);
  for (int64_t o = 0; o < quantized.out; ++o) quantized.DequantizeRow(o, {weight.row(o), static_cast<size_t>(quantized.in)});
  return weight;
}

// e H e^T of row o of weight - approximation.
inline double PlainRowLoss(const TestMatrix& weight, const TestMatrix& approximation, const TestMatrix& hessian, int64_t o) {
  const int64_t in = weight.cols;
  std::vector<double> error(static_cast<size_t>(in));
  for (int64_t i = 0; i < in; ++i) error[i] = static_cast<double>(weight.row(o)[i]) - static_cast<double>(approximation.row(o)[i]);
  double loss = 0;
  for (int64_t i = 0; i < in; ++i) {
    for (int64_t j = 0; j < in; ++j) loss += error[i] * static_cast<double>(hessian.row(i)[j]) * error[j];
  }
  return loss;
}

inline double PlainLoss(const TestMatrix& weight, const TestMatrix& approximation, const TestMatrix& hessian) {
  double loss = 0;
  for (int64_t o = 0; o < weight.rows; ++o) loss += PlainRowLoss(weight, approximation, hessian, o);
  return loss;
}

}  // namespace pith
