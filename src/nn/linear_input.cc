#include "nn/linear_input.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "base/float_types.h"

namespace pith {
namespace {

template <typename T> T* As(AlignedBuffer& buffer) { return reinterpret_cast<T*>(buffer.data()); }
template <typename T> const T* As(const AlignedBuffer& buffer) { return reinterpret_cast<const T*>(buffer.data()); }

// Moves the magnitudes of a row that are at least `threshold` to `index` and `value`, room for dim each; returns how many. `kept` [dim]:
// the row with zeros in their places.
int32_t SplitOutliers(const float* x, int64_t dim, float threshold, float* kept, int32_t* index, float* value) {
  int32_t count = 0;
  for (int64_t i = 0; i < dim; ++i) {
    const bool outlier = std::abs(x[i]) >= threshold;
    kept[i] = outlier ? 0.0f : x[i];
    index[count] = static_cast<int32_t>(i);  // without a branch: taken back by the next one if it is none
    value[count] = x[i];
    count += outlier ? 1 : 0;
  }
  return count;
}

}  // namespace

void LinearInput::Activate(const InputFormat& format, int64_t rows, int64_t dim) {
  Form* form = nullptr;  // the one of this format, else one that is not in use, else a new one
  for (Form& candidate : forms_) {
    if (candidate.format == format || (form == nullptr && !candidate.active)) form = &candidate;
  }
  if (form == nullptr) form = &forms_.emplace_back();
  form->format = format;
  form->active = true;
  if (format.kind == GemmActivation::kBf16) {
    form->high.Reserve(rows * dim * 2);
    return;
  }
  if (format.kind == GemmActivation::kFp8) {
    form->high.Reserve(rows * dim * 2);
    form->scale.Reserve(rows * static_cast<int64_t>(sizeof(float)));
    return;
  }
  DCHECK(dim % format.group_size == 0 && format.group_size % format.sum_group == 0);
  form->high.Reserve(rows * dim);
  if (format.kind == GemmActivation::kInt16) form->low.Reserve(rows * dim);
  form->scale.Reserve(rows * (dim / format.group_size) * static_cast<int64_t>(sizeof(float)));
  form->sum.Reserve(rows * (dim / format.sum_group) * static_cast<int64_t>(sizeof(int32_t)));
  if (format.outlier_threshold > 0) {
    DCHECK(format.kind == GemmActivation::kInt8);
    form->outlier_count.Reserve(rows * static_cast<int64_t>(sizeof(int32_t)));
    form->outlier_index.Reserve(rows * dim * static_cast<int64_t>(sizeof(int32_t)));
    form->outlier_value.Reserve(rows * dim * static_cast<int64_t>(sizeof(float)));
  }
  form->outlier_columns.Reserve(rows * static_cast<int64_t>(format.outlier_columns.size()) * 2);
}

void LinearInput::Prepare(absl::Span<const InputFormat> formats, int64_t rows, int64_t dim, bool keep_bf16) {
  dim_ = dim;
  for (Form& form : forms_) form.active = false;
  for (const InputFormat& format : formats) Activate(format, rows, dim);
  if (keep_bf16) Activate({}, rows, dim);
}

int64_t LinearInput::bytes() const {
  size_t bytes = 0;
  for (const Form& form : forms_) {
    bytes += form.high.size() + form.low.size() + form.scale.size() + form.sum.size();
    bytes += form.outlier_count.size() + form.outlier_index.size() + form.outlier_value.size() + form.outlier_columns.size();
  }
  return static_cast<int64_t>(bytes);
}

int64_t LinearInput::column_unit() const {
  int64_t unit = 1;
  for (const Form& form : forms_) {
    if (!form.active || form.format.kind == GemmActivation::kBf16) continue;
    if (form.format.kind == GemmActivation::kFp8 || form.format.outlier_threshold > 0 || !form.format.outlier_columns.empty()) return dim_;
    unit = std::lcm(unit, form.format.group_size);
  }
  return std::min(unit, dim_);
}

void LinearInput::Store(const ComputeContext& context, int64_t row, int64_t count, const float* x, int64_t x_stride) {
  StoreColumns(context, row, count, 0, dim_, x, x_stride);
}

void LinearInput::StoreColumns(const ComputeContext& context, int64_t row, int64_t count, int64_t column, int64_t columns, const float* x,
                               int64_t x_stride) {
  const Range range{row, count, column, columns};
  for (Form& form : forms_) {
    if (!form.active) continue;
    const InputFormat& format = form.format;
    if (format.kind == GemmActivation::kBf16) {
      for (int64_t r = 0; r < count; ++r) {
        context.operators.convert({.in = x + r * x_stride, .out = As<uint16_t>(form.high) + (row + r) * dim_ + column, .count = columns});
      }
    } else if (format.kind == GemmActivation::kFp8) {
      DCHECK(columns == dim_);
      context.operators.quantize_activation_fp8({.x = x,
                                                 .x_stride = x_stride,
                                                 .num_rows = count,
                                                 .dim = dim_,
                                                 .static_scale = format.static_scale,
                                                 .out = As<uint16_t>(form.high) + row * dim_,
                                                 .out_stride = dim_,
                                                 .scale = As<float>(form.scale) + row});
    } else if (format.outlier_threshold > 0) {
      StoreRowsWithOutliers(context, form, range, x, x_stride);
    } else if (!format.outlier_columns.empty()) {
      StoreRowsWithColumns(context, form, range, x, x_stride);
    } else {
      StoreIntegers(context, form, range, x, x_stride);
    }
  }
}

void LinearInput::StoreRowsWithOutliers(const ComputeContext& context, Form& form, const Range& range, const float* x, int64_t x_stride) {
  DCHECK(range.columns == dim_);
  static thread_local std::vector<float> kept;
  kept.resize(static_cast<size_t>(dim_));
  for (int64_t r = 0; r < range.count; ++r) {
    const int64_t row = range.row + r;
    As<int32_t>(form.outlier_count)[row] = SplitOutliers(x + r * x_stride, dim_, form.format.outlier_threshold, kept.data(),
                                                         As<int32_t>(form.outlier_index) + row * dim_,
                                                         As<float>(form.outlier_value) + row * dim_);
    StoreIntegers(context, form, {row, 1, 0, dim_}, kept.data(), dim_);
  }
}

void LinearInput::StoreRowsWithColumns(const ComputeContext& context, Form& form, const Range& range, const float* x, int64_t x_stride) {
  DCHECK(range.columns == dim_);
  const std::vector<int32_t>& columns = form.format.outlier_columns;
  DCHECK(columns.back() < dim_);
  static thread_local std::vector<float> kept;
  for (int64_t r = 0; r < range.count; ++r) {
    kept.assign(x + r * x_stride, x + r * x_stride + dim_);
    uint16_t* out = As<uint16_t>(form.outlier_columns) + (range.row + r) * static_cast<int64_t>(columns.size());
    for (const int32_t column : columns) {
      *out++ = ToBfloat16(kept[column]).bits;
      kept[column] = 0;
    }
    StoreIntegers(context, form, {range.row + r, 1, 0, dim_}, kept.data(), dim_);
  }
}

void LinearInput::StoreIntegers(const ComputeContext& context, Form& form, const Range& range, const float* x, int64_t x_stride) {
  const InputFormat& format = form.format;
  const int64_t groups = dim_ / format.group_size, sums = dim_ / format.sum_group, begin = range.row * dim_ + range.column;
  DCHECK(range.column % format.group_size == 0 && range.columns % format.group_size == 0);
  context.operators.quantize_activation({.x = x,
                                         .x_stride = x_stride,
                                         .num_rows = range.count,
                                         .dim = range.columns,
                                         .group_size = format.group_size,
                                         .sum_group = format.sum_group,
                                         .static_scale = format.static_scale,
                                         .high = As<int8_t>(form.high) + begin,
                                         .low = format.kind == GemmActivation::kInt16 ? As<int8_t>(form.low) + begin : nullptr,
                                         .out_stride = dim_,
                                         .scale = As<float>(form.scale) + range.row * groups + range.column / format.group_size,
                                         .scale_stride = groups,
                                         .sum = As<int32_t>(form.sum) + range.row * sums + range.column / format.sum_group,
                                         .sum_stride = sums});
}

void LinearInput::StoreBf16(const ComputeContext& context, int64_t row, int64_t count, const uint16_t* x, int64_t x_stride) {
  const absl::Span<float> wide = RowScratch(dim_);
  for (int64_t r = 0; r < count; ++r) {
    for (int64_t i = 0; i < dim_; ++i) wide[i] = ToFloat(bfloat16{x[r * x_stride + i]});
    Store(context, row + r, 1, wide.data(), dim_);
  }
}

const uint16_t* LinearInput::bf16() const {
  for (const Form& form : forms_) {
    if (form.active && form.format.kind == GemmActivation::kBf16) return As<uint16_t>(form.high);
  }
  return nullptr;
}

const LinearInput::Form& LinearInput::Find(const InputFormat& format) const {
  for (const Form& form : forms_) {
    if (form.active && form.format == format) return form;
  }
  CHECK(false);  // the layer's formats were not given to Prepare
  return forms_.front();
}

IntegerActivation LinearInput::Integers(const InputFormat& format, int64_t row) const {
  const Form& form = Find(format);
  return {.high = As<int8_t>(form.high) + row * dim_,
          .low = format.kind == GemmActivation::kInt16 ? As<int8_t>(form.low) + row * dim_ : nullptr,
          .stride = dim_,
          .scale = As<float>(form.scale) + row * (dim_ / format.group_size),
          .sum = As<int32_t>(form.sum) + row * (dim_ / format.sum_group)};
}

OutlierActivation LinearInput::Outliers(const InputFormat& format, int64_t row) const {
  if (format.outlier_threshold == 0) return {};
  const Form& form = Find(format);
  return {.count = As<int32_t>(form.outlier_count) + row,
          .index = As<int32_t>(form.outlier_index) + row * dim_,
          .value = As<float>(form.outlier_value) + row * dim_,
          .stride = dim_};
}

const uint16_t* LinearInput::OutlierColumns(const InputFormat& format, int64_t row) const {
  return As<uint16_t>(Find(format).outlier_columns) + row * static_cast<int64_t>(format.outlier_columns.size());
}

const uint16_t* LinearInput::Fp8Values(const InputFormat& format, int64_t row) const {
  return As<uint16_t>(Find(format).high) + row * dim_;
}

const float* LinearInput::Fp8Scales(const InputFormat& format, int64_t row) const { return As<float>(Find(format).scale) + row; }

}  // namespace pith
