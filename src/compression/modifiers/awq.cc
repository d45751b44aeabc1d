#include "compression/modifiers/awq.h"

#include "absl/strings/str_format.h"
#include "base/status.h"
#include "compression/modifiers/awq_search.h"

namespace pith {
namespace {

class AwqScaler : public InputScaler {
 public:
  explicit AwqScaler(const ClipSearch& search) : search_(search) {}

  StatisticsLevel needs() const override { return StatisticsLevel::kHessian; }

  absl::StatusOr<InputScales> Search(const SharedInput& input, ThreadPool& pool) override {
    ASSIGN_OR_RETURN(const MatrixView<const float> hessian, input.statistics->Hessian(pool));
    const AwqOptions options{.clip_search = search_, .scale_dtype = input.scale_dtype, .tied_columns = input.tied_columns};
    auto found = SearchAwqScales(input.statistics->MeanAbs(), input.weights, hessian, input.args, options, pool);
    if (!found.ok()) return Annotate(found.status(), input.name);
    const double unscaled = found->curve.front().error;
    InputScales result{.error_ratio = unscaled > 0 ? found->best.error / unscaled : 1.0};
    if (found->best.identity) return result;
    result.choice = absl::StrFormat("ratio %.2f", found->best.ratio);
    result.scales = std::move(found->scales);
    return result;
  }

 private:
  ClipSearch search_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<InputScaler>> MakeAwqScaler(const Recipe& recipe) {
  if (recipe.scheme.weights->type != QuantizationType::kInt) {
    return NotSupportedError("method ", recipe.method, ": expected a scheme of integer weights, found ", recipe.scheme.name);
  }
  return std::make_unique<AwqScaler>(recipe.clip_search);
}

}  // namespace pith
