#include "compression/modifiers/gptq.h"

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "compression/modifiers/gptq_solver.h"
#include "quantization/quantize_weight.h"

namespace pith {
namespace {

class GptqQuantizer : public WeightQuantizer {
 public:
  explicit GptqQuantizer(const GptqOptions& options) : options_(options) {}

  StatisticsLevel needs() const override { return StatisticsLevel::kHessian; }

  void BeginLayer() override { factors_.clear(); }

  absl::StatusOr<QuantizedLayer> Quantize(const LinearLayer& layer, InputStatistics* input, ThreadPool& pool) override {
    if (input == nullptr) return BugError(layer.name, ": expected its input to be observed");
    const auto factors = Factors(*input, pool);
    if (absl::IsFailedPrecondition(factors.status())) return RoundToNearest(layer, factors.status(), pool);
    if (!factors.ok()) return Annotate(factors.status(), layer.name);
    auto solved = SolveGptq(layer.weight, **factors, layer.args, layer.scale_dtype, options_, pool);
    if (!solved.ok()) return Annotate(solved.status(), layer.name);
    QuantizedLayer result{.weight = std::move(solved->weight)};
    result.report = MakeLayerReport(layer.name, layer.weight, result.weight);
    if (solved->rtn_loss > 0) result.report.output_error_vs_rtn = solved->loss / solved->rtn_loss;
    result.report.notes = NotesOf(*solved);
    return result;
  }

 private:
  // Of a layer whose input tells nothing.
  absl::StatusOr<QuantizedLayer> RoundToNearest(const LinearLayer& layer, const absl::Status& reason, ThreadPool& pool) const {
    auto quantized = QuantizeWeight(layer.weight, layer.args, layer.scale_dtype, options_.clip_search, pool);
    if (!quantized.ok()) return Annotate(quantized.status(), layer.name);
    QuantizedLayer result{.weight = *std::move(quantized)};
    result.report = MakeLayerReport(layer.name, layer.weight, result.weight);
    result.report.notes = {absl::StrCat("rounded to nearest: ", reason.message())};
    return result;
  }

  // Of all layers that share an input.
  absl::StatusOr<const GptqFactors*> Factors(InputStatistics& input, ThreadPool& pool) {
    const auto it = factors_.find(&input);
    if (it != factors_.end()) return &it->second;
    ASSIGN_OR_RETURN(const MatrixView<const float> hessian, input.Hessian(pool));
    ASSIGN_OR_RETURN(GptqFactors factors, FactorizeHessian(hessian, options_, pool));
    return &factors_.emplace(&input, std::move(factors)).first->second;
  }

  std::vector<std::string> NotesOf(const GptqResult& result) const {
    std::vector<std::string> notes;
    if (result.damping > options_.damping) {
      notes.push_back(absl::StrFormat("damping raised from %.3g to %.3g", options_.damping, result.damping));
    }
    if (result.dead_columns > 0) {
      notes.push_back(
          absl::StrCat(result.dead_columns, result.dead_columns == 1 ? " input channel was" : " input channels were", " always 0"));
    }
    return notes;
  }

  GptqOptions options_;
  std::map<const InputStatistics*, GptqFactors> factors_;  // of the decoder layer at work
};

}  // namespace

absl::StatusOr<std::unique_ptr<WeightQuantizer>> MakeGptqQuantizer(const Recipe& recipe) {
  if (recipe.scheme.weights->type != QuantizationType::kInt) {
    return NotSupportedError("method ", recipe.method, ": expected a scheme of integer weights, found ", recipe.scheme.name);
  }
  return std::make_unique<GptqQuantizer>(GptqOptions{.damping = recipe.damping,
                                                     .activation_order = recipe.activation_order,
                                                     .clip_search = recipe.clip_search,
                                                     .refit_scales = recipe.refit_scales});
}

}  // namespace pith
