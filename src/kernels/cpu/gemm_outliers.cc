#include "kernels/cpu/gemm_outliers.h"

#include <cstring>

#include "kernels/cpu/gemm_layout.h"
#include "kernels/cpu/gemm_prepack.h"

namespace pith {
namespace {

// Scale, and zero point or min, of one group of a panel's columns.
struct GroupValues {
  float scale[kGemmPanel], offset[kGemmPanel];
};

GroupValues ReadGroup(const PanelLayout& layout, const uint8_t* panel, int64_t g) {
  GroupValues group;
  for (int64_t j = 0; j < kGemmPanel; ++j) {
    group.scale[j] = ReadScale(layout, panel, g, j);
    switch (layout.offset) {
      case GroupOffset::kNone: group.offset[j] = static_cast<float>(layout.center); break;
      case GroupOffset::kZeroPoint: group.offset[j] = panel[layout.offset_begin + g * kGemmPanel + j]; break;
      case GroupOffset::kMin: group.offset[j] = ReadScale(layout, panel + layout.offset_begin, g, j); break;
    }
  }
  return group;
}

// sum[16] += the products of one row's outliers with the weights of one panel.
void SumOutliers(const PanelLayout& layout, const uint8_t* panel, const int32_t* index, const float* value, int32_t count, float* sum) {
  GroupValues group;
  int64_t read = -1;  // the group that `group` holds
  for (int32_t o = 0; o < count; ++o) {
    const int64_t g = index[o] / layout.group_size, i = index[o] % layout.group_size;
    if (g != read) group = ReadGroup(layout, panel, read = g);
    uint32_t lane[kGemmPanel];  // four codes of each column
    std::memcpy(lane, panel + layout.code_begin + g * layout.group_bytes + i / kI8UnitK * kIntegerUnitBytes, sizeof(lane));
    const int shift = static_cast<int>(8 * (i % kI8UnitK));
    const float x = value[o];
    if (layout.offset == GroupOffset::kMin) {
      for (int64_t j = 0; j < kGemmPanel; ++j) {
        const float code = static_cast<float>(static_cast<int32_t>(lane[j] >> shift & 255u));
        sum[j] += x * (group.scale[j] * code - group.offset[j]);
      }
    } else {
      for (int64_t j = 0; j < kGemmPanel; ++j) {
        const float code = static_cast<float>(static_cast<int32_t>(lane[j] >> shift & 255u));
        sum[j] += x * (group.scale[j] * (code - group.offset[j]));
      }
    }
  }
}

}  // namespace

void AddI8Outliers(const GemmParams& params) {
  const OutlierActivation& outlier = params.outlier;
  if (outlier.count == nullptr) return;
  const PanelLayout layout = I8Layout(params.problem);
  for (int64_t panel = params.panel_begin; panel < params.panel_end; ++panel) {
    const int64_t column = panel * kGemmPanel;
    const int64_t columns = params.problem.n - column < kGemmPanel ? params.problem.n - column : kGemmPanel;
    for (int64_t row = 0; row < params.m; ++row) {
      if (outlier.count[row] == 0) continue;
      float sum[kGemmPanel] = {};
      SumOutliers(layout, params.weight + panel * layout.panel_bytes, outlier.index + row * outlier.stride,
                  outlier.value + row * outlier.stride, outlier.count[row], sum);
      float* out = params.out + row * params.out_stride + column - params.out_panel * kGemmPanel;
      for (int64_t j = 0; j < columns; ++j) out[j] += sum[j];
    }
  }
}

}  // namespace pith
