#include "compression/modifiers/rtn.h"

#include <algorithm>
#include <vector>

#include "base/status.h"
#include "quantization/quantize_weight.h"

namespace pith {
namespace {

class RtnQuantizer : public WeightQuantizer {
 public:
  explicit RtnQuantizer(const ClipSearch& search) : search_(search) {}

  StatisticsLevel needs() const override { return StatisticsLevel::kNone; }

  absl::StatusOr<QuantizedLayer> Quantize(const LinearLayer& layer, InputStatistics* input, ThreadPool& pool) override {
    std::vector<float> importance;
    if (input != nullptr && layer.args.type == QuantizationType::kInt) importance = Importance(input->MeanSquare(), layer.outlier_columns);
    auto quantized = QuantizeWeight(layer.weight, layer.args, layer.scale_dtype, search_, pool, importance);
    if (!quantized.ok()) return Annotate(quantized.status(), layer.name);
    QuantizedLayer result{.weight = *std::move(quantized)};
    result.report = MakeLayerReport(layer.name, layer.weight, result.weight);
    return result;
  }

 private:
  // Relative to the largest; a channel without input still counts a little, so that its weights keep their size.
  static std::vector<float> Importance(std::vector<float> mean_square, const std::vector<int32_t>& outlier_columns) {
    for (const int32_t column : outlier_columns) mean_square[static_cast<size_t>(column)] = 0;
    const float largest = *std::max_element(mean_square.begin(), mean_square.end());
    if (!(largest > 0)) return {};
    for (float& value : mean_square) value = std::max(value / largest, 1e-8f);
    return mean_square;
  }

  ClipSearch search_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<WeightQuantizer>> MakeRtnQuantizer(const Recipe& recipe) {
  return std::make_unique<RtnQuantizer>(recipe.clip_search);
}

}  // namespace pith
