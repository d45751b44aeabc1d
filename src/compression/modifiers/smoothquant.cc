#include "compression/modifiers/smoothquant.h"

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "compression/modifiers/smoothquant_solver.h"

namespace pith {
namespace {

class SmoothQuantScaler : public InputScaler {
 public:
  SmoothQuantScaler(std::optional<double> alpha, const ClipSearch& search) : alpha_(alpha), search_(search) {}

  StatisticsLevel needs() const override { return StatisticsLevel::kRows; }

  absl::StatusOr<InputScales> Search(const SharedInput& input, ThreadPool& pool) override {
    const SmoothQuantOptions options{
        .alpha = alpha_, .args = input.args, .clip_search = search_, .scale_dtype = input.scale_dtype, .tied_columns = input.tied_columns};
    auto found = SolveSmoothQuant(input.statistics->max_abs(), input.weights, input.statistics->sample(), options, pool);
    if (!found.ok()) return Annotate(found.status(), input.name);
    const double unscaled = found->curve.front().error;
    InputScales result{.error_ratio = unscaled > 0 ? found->best.error / unscaled : 1.0};
    if (found->best.identity) return result;
    result.choice = absl::StrFormat("alpha %.2f", found->best.alpha);
    result.scales = std::move(found->scales);
    return result;
  }

 private:
  std::optional<double> alpha_;
  ClipSearch search_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<InputScaler>> MakeSmoothQuantScaler(const Recipe& recipe) {
  const auto& input = recipe.scheme.input_activations;
  if (recipe.scheme.weights->type != QuantizationType::kInt || !input.has_value()) {
    return NotSupportedError("method ", recipe.method, ": expected a scheme of int8 weights and activations, found ", recipe.scheme.name);
  }
  return std::make_unique<SmoothQuantScaler>(recipe.smoothing_strength, recipe.clip_search);
}

}  // namespace pith
