#include "compression/kv_cache_scales.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "model/declared_kv_cache.h"
#include "quantization/formats/input_scale.h"
#include "quantization/formats/stored_tensors.h"
#include "tensor/store_float.h"

namespace pith {
namespace {

constexpr float kLargestCode = 448.0f, kSaturatesFrom = 464.0f;  // what rounds to 448 is stored exactly enough

// Compared as bits: NaN is larger than anything.
void Widen(const float* x, int64_t count, float& largest) {
  uint32_t bits = std::bit_cast<uint32_t>(largest);
  for (int64_t i = 0; i < count; ++i) bits = std::max(bits, std::bit_cast<uint32_t>(x[i]) & 0x7FFFFFFFu);
  largest = std::bit_cast<float>(bits);
}

Shape ScaleShape(const QuantizationArgs& args, int64_t num_kv_heads) {
  return args.strategy == QuantizationStrategy::kAttnHead ? Shape{num_kv_heads, 1, 1} : Shape{1};
}

// The scales of `what` ("keys") and what is to be said of them.
std::vector<float> ScalesOf(absl::string_view what, const QuantizationArgs& args, std::vector<float> max_abs, DType dtype,
                            std::vector<std::string>& notes) {
  const bool by_head = args.strategy == QuantizationStrategy::kAttnHead;
  if (!by_head) max_abs = {*std::max_element(max_abs.begin(), max_abs.end())};
  std::vector<float> scales;
  for (size_t h = 0; h < max_abs.size(); ++h) {
    const float scale = std::clamp(StaticInputScale(args, max_abs[h], dtype), kKvSmallest, kLargestKvScale);
    const std::string of = absl::StrCat(what, by_head ? absl::StrCat(" of KV head ", h) : "");
    if (max_abs[h] == 0) {
      notes.push_back(absl::StrCat(of, " were 0 throughout: scale 1"));
    } else if (max_abs[h] >= kSaturatesFrom * scale || max_abs[h] < kLargestCode / 2 * scale) {
      notes.push_back(absl::StrCat(of, " of up to ", max_abs[h], " are ", max_abs[h] >= kSaturatesFrom * scale ? "clipped" : "coarse", ": ",
                                   DTypeName(dtype), " holds scale ", scale, " instead of ", max_abs[h] / kLargestCode));
    }
    scales.push_back(scale);
  }
  return scales;
}

}  // namespace

void KvRange::OnKeysValues(const float* keys, const float* values, int64_t stride, int64_t num_rows) {
  for (int64_t r = 0; r < num_rows; ++r) {
    for (size_t h = 0; h < key_.size(); ++h) {
      const int64_t at = r * stride + static_cast<int64_t>(h) * head_dim_;
      Widen(keys + at, head_dim_, key_[h]);
      Widen(values + at, head_dim_, value_[h]);
    }
  }
}

absl::StatusOr<KvScaleReport> MakeKvScales(const std::string& attention, const QuantizationArgs& args, const KvRange& range, DType dtype) {
  for (const std::vector<float>* largest : {&range.key_max_abs(), &range.value_max_abs()}) {
    for (const float magnitude : *largest) {
      if (std::isfinite(magnitude)) continue;
      return BadFileError(attention, ": expected finite ", largest == &range.key_max_abs() ? "keys" : "values",
                          " on the calibration data, found ", magnitude);
    }
  }
  KvScaleReport report{.name = attention, .key_max_abs = range.key_max_abs(), .value_max_abs = range.value_max_abs()};
  report.key_scales = ScalesOf("keys", args, report.key_max_abs, dtype, report.notes);
  report.value_scales = ScalesOf("values", args, report.value_max_abs, dtype, report.notes);
  return report;
}

std::vector<NamedTensor> EncodeKvScales(const KvScaleReport& scales, const QuantizationArgs& args, DType dtype) {
  std::vector<NamedTensor> tensors;
  for (const auto& [suffix, values] : {std::pair{".k_scale", &scales.key_scales}, std::pair{".v_scale", &scales.value_scales}}) {
    Tensor tensor(dtype, ScaleShape(args, static_cast<int64_t>(values->size())));
    for (size_t i = 0; i < values->size(); ++i) StoreFloat((*values)[i], static_cast<int64_t>(i), tensor);
    tensors.push_back({absl::StrCat(scales.name, suffix), std::move(tensor)});
  }
  return tensors;
}

std::vector<TensorSpec> PlanKvScales(const WeightMap& map, const DecoderConfig& config, const QuantizationArgs& args, DType dtype) {
  std::vector<TensorSpec> specs;
  for (int64_t i = 0; i < config.num_layers; ++i) {
    for (const char* part : {"k", "v"}) specs.push_back({KvScaleName(map, i, part), dtype, ScaleShape(args, config.num_kv_heads)});
  }
  return specs;
}

}  // namespace pith
