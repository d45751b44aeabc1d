#include "eval/task_figures.h"

#include <map>
#include <utility>

namespace pith {

std::vector<GateFigure> MakeTaskFigures(const TaskMeasurement& measurement, const std::string& kv_cache, const std::string& data_path,
                                        const BootstrapOptions& bootstrap) {
  const auto shared = std::make_shared<const TaskMeasurement>(measurement);
  const auto known = std::make_shared<std::map<double, std::vector<SliceComparison>>>();  // by confidence
  const auto compare = [shared, known, bootstrap](double confidence) -> const std::vector<SliceComparison>& {
    const auto [there, fresh] = known->try_emplace(confidence);
    if (fresh) {
      BootstrapOptions options = bootstrap;
      options.confidence = confidence;
      there->second = CompareItems(*shared->items, shared->reference, shared->model, options);
    }
    return there->second;
  };
  std::vector<GateFigure> figures;
  for (const SliceComparison& slice : compare(0.95)) {
    figures.push_back(
        {.conditions = {.metric = "accuracy_delta",
                        .slice = slice.slice,
                        .temperature = measurement.temperature,
                        .context = measurement.context,
                        .kv_cache = kv_cache,
                        .data_path = data_path},
         .estimate = [compare, i = figures.size()](double confidence) { return compare(confidence)[i].outcomes.difference; }});
  }
  return figures;
}

std::vector<EvidenceRecord> MakeEvidenceRecords(absl::Span<const GateFigure> figures) {
  std::vector<EvidenceRecord> records;
  for (const GateFigure& figure : figures) {
    const Estimate estimate = figure.estimate(0.95);
    records.push_back(
        {.conditions = figure.conditions, .n = estimate.n, .value = estimate.value, .low = estimate.low, .high = estimate.high});
  }
  return records;
}

OrderedJson ToJson(const TaskMeasurement& measurement, const BootstrapOptions& bootstrap) {
  OrderedJson list = OrderedJson::array();
  const std::vector<TaskItem>& items = *measurement.items;
  for (const SliceComparison& slice : CompareItems(items, measurement.reference, measurement.model, bootstrap)) {
    int64_t count = 0, samples = 0, cut_off = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      if (slice.slice != "all" && items[i].slice != slice.slice) continue;
      ++count;
      samples += static_cast<int64_t>(measurement.model[i].scores.size());
      cut_off += measurement.model[i].cut_off;
    }
    OrderedJson entry = {
        {"temperature", measurement.temperature}, {"slice", slice.slice}, {"items", count}, {"samples", samples}, {"cut_off", cut_off}};
    entry.update(ToJson(slice.outcomes));
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace pith
