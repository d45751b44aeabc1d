#include "cli/eval_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace pith {
namespace {

std::string WithInterval(const Estimate& e, int digits) {
  return absl::StrFormat("%.*f [%.*f, %.*f]", digits, e.value, digits, e.low, digits, e.high);
}

std::string Row(absl::string_view name, const QualityMetrics& m) {
  return absl::StrFormat("%-28s %-28s %-9s %-9s %-9s %-9s %-9s %-24s %-24s %d\n", name, WithInterval(m.kl_mean, 5),
                         absl::StrFormat("%.5f", m.kl_median.value), absl::StrFormat("%.4f", m.kl_p90.value),
                         absl::StrFormat("%.3f", m.kl_p99.value), absl::StrFormat("%.3f", m.kl_p999.value),
                         absl::StrFormat("%.2f", m.kl_max.value), WithInterval(m.same_top, 4), WithInterval(m.ppl_ratio, 4), m.kl_mean.n);
}

std::string ServedRows(absl::string_view name, const QualityMetrics& m) {
  std::string text;
  for (const ServedMetrics& served : m.served) {
    text += absl::StrFormat("%-28s %-12g %-28s %-28s %-10s %s\n", name, served.params.temperature,
                            WithInterval(served.total_variation_mean, 5), WithInterval(served.jensen_shannon_mean, 5),
                            absl::StrFormat("%.5f", served.lost_mass_mean.value),
                            served.params.greedy() ? "-" : WithInterval(served.kl_mean, 5));
  }
  return text;
}

}  // namespace

std::string QualityTable(const std::vector<std::string>& names, const std::vector<ModelQuality>& qualities) {
  std::string text = absl::StrFormat("%-28s %-28s %-9s %-9s %-9s %-9s %-9s %-24s %-24s %s\n", "model", "mean KL [95 %]", "median", "p90",
                                     "p99", "p99.9", "max", "same top [95 %]", "perplexity ratio [95 %]", "tokens");
  for (size_t i = 0; i < names.size(); ++i) {
    text += Row(names[i], qualities[i].overall);
    for (const auto& [slice, metrics] : qualities[i].slices) text += Row(absl::StrCat("  ", slice), metrics);
  }
  if (qualities.front().overall.served.empty()) return text;
  text += absl::StrFormat("\n%-28s %-12s %-28s %-28s %-10s %s\n", "served", "temperature", "total variation [95 %]",
                          "Jensen-Shannon [95 %]", "lost mass", "mean KL before cuts [95 %]");
  for (size_t i = 0; i < names.size(); ++i) {
    text += ServedRows(names[i], qualities[i].overall);
    for (const auto& [slice, metrics] : qualities[i].slices) text += ServedRows(absl::StrCat("  ", slice), metrics);
  }
  return text;
}

std::string TaskTable(const std::vector<std::string>& names, const std::vector<std::vector<TaskMeasurement>>& measurements,
                      const BootstrapOptions& bootstrap) {
  std::string text = absl::StrFormat("%-28s %-12s %-24s %-24s %-26s %-9s %s\n", "answered", "temperature", "reference [95 %]",
                                     "model [95 %]", "difference [95 %]", "p", "items");
  for (size_t i = 0; i < names.size(); ++i) {
    for (const TaskMeasurement& measurement : measurements[i]) {
      for (const SliceComparison& slice : CompareItems(*measurement.items, measurement.reference, measurement.model, bootstrap)) {
        const OutcomeComparison& o = slice.outcomes;
        text += absl::StrFormat("%-28s %-12g %-24s %-24s %-26s %-9.3g %d\n",
                                slice.slice == "all" ? names[i] : absl::StrCat("  ", slice.slice), measurement.temperature,
                                WithInterval(o.reference_rate, 3), WithInterval(o.model_rate, 3), WithInterval(o.difference, 3),
                                o.mcnemar_p, o.difference.n);
      }
    }
  }
  return text;
}

}  // namespace pith
