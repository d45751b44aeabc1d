// The checks that searches for scales of input columns share.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status.h"
#include "tensor/tensor.h"

namespace pith {

// At least one weight, each [out, in] with as many columns as `statistic` has numbers, which are finite and not negative. Errors:
// kInvalidArgument naming the weight or the number.
inline absl::Status CheckSharedInput(absl::string_view name, absl::Span<const float> statistic,
                                     absl::Span<const MatrixView<const float>> weights) {
  if (weights.empty()) return UsageError("weights: expected at least one, found none");
  const auto in = static_cast<int64_t>(statistic.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i].cols != in) return UsageError("weights[", i, "]: expected in=", in, ", found ", weights[i].cols);
  }
  for (int64_t i = 0; i < in; ++i) {
    if (!std::isfinite(statistic[i]) || statistic[i] < 0) {
      return UsageError(name, "[", i, "]: expected a finite number >= 0, found ", statistic[i]);
    }
  }
  return absl::OkStatus();
}

// Empty, or a number in [0, in) per column: columns with the same number get the same scale. For columns that one output before makes:
// with grouped-query attention a row of v_proj feeds o_proj once per query head. Errors: kInvalidArgument naming the column.
inline absl::Status CheckTiedColumns(const std::vector<int32_t>& tied_columns, int64_t in) {
  if (!tied_columns.empty() && static_cast<int64_t>(tied_columns.size()) != in) {
    return UsageError("tied_columns: expected a number per column, in=", in, ", found ", tied_columns.size());
  }
  for (size_t i = 0; i < tied_columns.size(); ++i) {
    if (tied_columns[i] < 0 || tied_columns[i] >= in) {
      return UsageError("tied_columns[", i, "]: expected 0 to ", in - 1, ", found ", tied_columns[i]);
    }
  }
  return absl::OkStatus();
}

}  // namespace pith
