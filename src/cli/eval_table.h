// The tables that `pith eval` prints.
#pragma once

#include <string>
#include <vector>

#include "eval/quality_metrics.h"
#include "eval/task_figures.h"

namespace pith {

// One row per model and slice, then what is served at each temperature. names[i] is of qualities[i].
std::string QualityTable(const std::vector<std::string>& names, const std::vector<ModelQuality>& qualities);

// How many questions each model answered, beside the reference: one row per model, temperature and slice.
std::string TaskTable(const std::vector<std::string>& names, const std::vector<std::vector<TaskMeasurement>>& measurements,
                      const BootstrapOptions& bootstrap);

}  // namespace pith
