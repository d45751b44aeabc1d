#include "compression/modifiers/awq.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "compression/modifiers/awq_search.h"

namespace pith {
namespace {

class AwqScaler : public InputScaler {
 public:
  explicit AwqScaler(const AwqOptions& options) : options_(options) {}

  StatisticsLevel needs() const override { return StatisticsLevel::kHessian; }

  absl::StatusOr<InputScales> Search(const SharedInput& input, ThreadPool& pool) override {
    ASSIGN_OR_RETURN(const MatrixView<const float> hessian, input.statistics->Hessian(pool));
    AwqOptions options = options_;
    options.scale_dtype = input.scale_dtype;
    options.tied_columns = input.tied_columns;
    auto found = SearchAwqScales(input.statistics->MeanAbs(), input.weights, hessian, input.args, options, pool);
    if (!found.ok()) return Annotate(found.status(), input.name);
    const double unscaled = found->curve.front().error;
    InputScales result{.error_ratio = unscaled > 0 ? found->best.error / unscaled : 1.0};
    if (found->best.identity) return result;
    result.choice = absl::StrCat(absl::StrFormat("ratio %.2f", found->best.ratio), found->best.duo ? "" : " of the input alone");
    result.scales = std::move(found->scales);
    return result;
  }

 private:
  AwqOptions options_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<InputScaler>> MakeAwqScaler(const Recipe& recipe) {
  if (recipe.scheme.weights->type != QuantizationType::kInt) {
    return NotSupportedError("method ", recipe.method, ": expected a scheme of integer weights, found ", recipe.scheme.name);
  }
  ASSIGN_OR_RETURN(const Isa isa, SelectIsa());
  return std::make_unique<AwqScaler>(
      AwqOptions{.grid = recipe.awq_grid, .duo_scaling = recipe.duo_scaling, .clip_search = recipe.clip_search, .isa = isa});
}

}  // namespace pith
