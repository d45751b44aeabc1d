// The input of linear layers, held in every form that their kernels multiply with: bf16, integers with scales, or fp8
// with a scale per row.
//
//   input.Prepare(layer.formats(), rows, dim);
//   input.Store(context, 0, rows, x, x_stride);      // from f32, each form once, whoever reads it
//   layer.Run(context, input, 0, rows, out, out_stride);
//
// Rows are converted one by one, so a form of a row depends on the row alone. Different rows may be stored by different threads.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/gemm.h"
#include "nn/compute_context.h"
#include "tensor/tensor.h"

namespace pith {

// One form of an input. Sizes in k; see GemmProblem and quantize_activation.h.
struct InputFormat {
  GemmActivation kind = GemmActivation::kBf16;
  int64_t group_size = 0;  // integers: k that share a scale
  int64_t sum_group = 0;   // integers: k whose sum the kernel wants, GemmProblem::step()
  float static_scale = 0;  // > 0: the scale of every group (integers) or row (fp8)

  // int8: > 0 keeps magnitudes of at least this out of the integers and their scales, as outliers of their row.
  float outlier_threshold = 0;
  // int8: channels kept out of the integers and their scales and held in bf16 instead, ascending. Never together with a threshold.
  std::vector<int32_t> outlier_columns = {};

  friend bool operator==(const InputFormat&, const InputFormat&) = default;
};

class LinearInput {
 public:
  // Makes room for `rows` rows of `dim` in each of `formats`; keep_bf16 adds bf16 if it is not among them. Contents are lost. Buffers grow
  // to the largest use and stay. May throw std::bad_alloc.
  void Prepare(absl::Span<const InputFormat> formats, int64_t rows, int64_t dim, bool keep_bf16 = false);

  // Rows [row, row + count) from x f32, rows x_stride floats apart. On the calling thread.
  void Store(const ComputeContext& context, int64_t row, int64_t count, const float* x, int64_t x_stride);
  // The same from bf16 bits, which are exact in f32.
  void StoreBf16(const ComputeContext& context, int64_t row, int64_t count, const uint16_t* x, int64_t x_stride);

  // Columns of a row may be stored apart, in any order and by different threads, with the same bits: columns [column, column + columns),
  // both multiples of column_unit() or the end of the row. column_unit() is dim() where a form needs the row whole (one scale for it).
  int64_t column_unit() const;
  void StoreColumns(const ComputeContext& context, int64_t row, int64_t count, int64_t column, int64_t columns, const float* x,
                    int64_t x_stride);

  int64_t dim() const { return dim_; }
  int64_t bytes() const;  // of all buffers
  // bf16 bits [rows, dim], contiguous; null when no format and no caller wanted them.
  const uint16_t* bf16() const;
  // The integers of row `row` and those behind it. The format was given to Prepare.
  IntegerActivation Integers(const InputFormat& format, int64_t row) const;
  // The outliers of row `row` and those behind it; without a threshold none. The same format.
  OutlierActivation Outliers(const InputFormat& format, int64_t row) const;
  // The outlier columns of row `row` and those behind it, as bf16 bits [.., format.outlier_columns.size()], contiguous. The same format.
  const uint16_t* OutlierColumns(const InputFormat& format, int64_t row) const;
  // The e4m3 values of row `row` and those behind it as bf16 bits [.., dim], contiguous, and their scales, one per row: what GemmParams
  // calls activation and activation_scale. The format, of kind kFp8, was given to Prepare.
  const uint16_t* Fp8Values(const InputFormat& format, int64_t row) const;
  const float* Fp8Scales(const InputFormat& format, int64_t row) const;

 private:
  struct Form {
    InputFormat format;
    bool active = false;      // in use since the last Prepare
    AlignedBuffer high, low;  // bf16 bits, or integer planes
    AlignedBuffer scale, sum;
    AlignedBuffer outlier_count, outlier_index, outlier_value;
    AlignedBuffer outlier_columns;  // bf16 bits
  };
  struct Range {  // of rows and columns
    int64_t row, count, column, columns;
  };
  void StoreIntegers(const ComputeContext& context, Form& form, const Range& range, const float* x, int64_t x_stride);
  void StoreRowsWithOutliers(const ComputeContext& context, Form& form, const Range& range, const float* x, int64_t x_stride);
  void StoreRowsWithColumns(const ComputeContext& context, Form& form, const Range& range, const float* x, int64_t x_stride);
  const Form& Find(const InputFormat& format) const;
  void Activate(const InputFormat& format, int64_t rows, int64_t dim);

  int64_t dim_ = 0;
  std::vector<Form> forms_;  // as many as were in use at once; formats come and go
};

}  // namespace pith
