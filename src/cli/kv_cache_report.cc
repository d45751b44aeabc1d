#include "cli/kv_cache_report.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "cli/command.h"
#include "kv_cache/kv_storage.h"

namespace pith {
namespace {

using Scales = std::vector<float> KvScales::*;

std::string Range(const std::vector<KvScales>& layers, Scales part) {
  float least = (layers[0].*part)[0], most = least;
  for (const KvScales& layer : layers) {
    const auto [low, high] = std::minmax_element((layer.*part).begin(), (layer.*part).end());
    least = std::min(least, *low);
    most = std::max(most, *high);
  }
  return absl::StrFormat("%.3g to %.3g", least, most);
}

// One number where all heads share it, as it is stored.
OrderedJson ScalesJson(const DeclaredKvCache& declared, const std::vector<float>& scales) {
  if (declared.scheme->strategy == QuantizationStrategy::kAttnHead) return scales;
  return OrderedJson::array({scales[0]});
}

}  // namespace

std::string KvCacheLine(const DeclaredKvCache& declared) {
  if (!declared.scheme.has_value()) return "";
  const std::string line = absl::StrCat("KV cache: declared ", DescribeInput(*declared.scheme));
  if (declared.scales.empty()) return absl::StrCat(line, declared.scheme->dynamic ? "" : ", without scales: found at run time", "\n");
  return absl::StrCat(line, "; scales of ", Plural(static_cast<int64_t>(declared.scales.size()), "layer"), ": keys ",
                      Range(declared.scales, &KvScales::key), ", values ", Range(declared.scales, &KvScales::value), "\n");
}

OrderedJson ToJson(const DeclaredKvCache& declared) {
  if (!declared.scheme.has_value()) return nullptr;
  OrderedJson scales = OrderedJson::array();
  for (size_t i = 0; i < declared.scales.size(); ++i) {
    scales.push_back(
        {{"layer", i}, {"keys", ScalesJson(declared, declared.scales[i].key)}, {"values", ScalesJson(declared, declared.scales[i].value)}});
  }
  return {{"format", std::string(KvDtypeName(declared.dtype))}, {"scheme", ToJson(*declared.scheme)}, {"scales", scales}};
}

}  // namespace pith
