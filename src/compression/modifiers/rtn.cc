#include "compression/modifiers/rtn.h"

#include "base/status.h"
#include "quantization/quantize_weight.h"

namespace pith {
namespace {

class RtnModifier : public Modifier {
 public:
  bool RequiresCalibrationData() const override { return false; }

  absl::Status Initialize(const Recipe& recipe, const QuantizationArgs& args) override {
    args_ = args;
    search_ = recipe.clip_search;
    return absl::OkStatus();
  }

  absl::Status ObserveLayerInput(absl::string_view, MatrixView<const float>) override {
    return BugError("rtn: expected no calibration data");
  }

  absl::StatusOr<QuantizedLayer> QuantizeLayer(const LinearLayer& layer, ThreadPool& pool) override {
    auto quantized = QuantizeWeight(layer.weight, args_, layer.model_dtype, search_, pool);
    if (!quantized.ok()) return Annotate(quantized.status(), layer.name);
    QuantizedLayer result{.weight = *std::move(quantized)};
    result.report = MakeLayerReport(layer.name, layer.weight, result.weight);
    return result;
  }

  absl::Status Finalize() override { return absl::OkStatus(); }

 private:
  QuantizationArgs args_;
  ClipSearch search_;
};

}  // namespace

std::unique_ptr<Modifier> MakeRtnModifier() { return std::make_unique<RtnModifier>(); }

}  // namespace pith
