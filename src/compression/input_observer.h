// Hands the rows that flow into linear modules to the statistics of their inputs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/thread_pool.h"
#include "compression/input_statistics.h"
#include "model/layer_observer.h"

namespace pith {

// Of modules that share an input one is enough. Not thread-safe; pool and statistics must outlive it.
class InputObserver : public LayerObserver {
 public:
  explicit InputObserver(ThreadPool& pool) : pool_(pool) {}

  void Add(const std::string& module, InputStatistics* statistics) { statistics_[module] = statistics; }

  void OnLinearInput(absl::string_view module, const uint16_t* input, int64_t num_rows, int64_t dim) override;

 private:
  ThreadPool& pool_;
  std::map<std::string, InputStatistics*> statistics_;
  std::vector<float> rows_;
};

}  // namespace pith
