#include "eval/distribution.h"

#include <cmath>
#include <limits>

#include "base/check.h"

namespace pith {
namespace {

struct RowSummary {
  float largest = -std::numeric_limits<float>::infinity();
  int32_t top = -1;
  double log_normalizer = 0;  // log sum exp(logit - largest)
};

RowSummary Summarize(absl::Span<const float> logits) {
  RowSummary summary;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > summary.largest) {
      summary.largest = logits[i];
      summary.top = static_cast<int32_t>(i);
    }
  }
  double sum = 0;
  for (const float logit : logits) sum += static_cast<double>(std::exp(logit - summary.largest));
  summary.log_normalizer = std::log(sum);
  return summary;
}

}  // namespace

TokenComparison CompareLogits(absl::Span<const float> reference, absl::Span<const float> model, int32_t next_token) {
  CHECK_EQ(reference.size(), model.size());
  const RowSummary ref = Summarize(reference), mod = Summarize(model);
  const auto log_p = [](absl::Span<const float> logits, const RowSummary& row, size_t i) {
    return static_cast<double>(logits[i]) - static_cast<double>(row.largest) - row.log_normalizer;
  };
  const double scale = std::exp(-ref.log_normalizer);
  double kl = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double p = static_cast<double>(std::exp(reference[i] - ref.largest)) * scale;
    kl += p * (log_p(reference, ref, i) - log_p(model, mod, i));
  }
  const auto next = static_cast<size_t>(next_token), top = static_cast<size_t>(ref.top);
  return {.kl = kl < 0 ? 0 : kl,  // rounding of two nearly equal rows
          .nll_reference = -log_p(reference, ref, next),
          .nll_model = -log_p(model, mod, next),
          .delta_p = std::exp(log_p(model, mod, top)) - std::exp(log_p(reference, ref, top)),
          .same_top = ref.top == mod.top,
          .reference_top = ref.top,
          .model_top = mod.top};
}

}  // namespace pith
