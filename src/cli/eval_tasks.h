// The part of `pith eval` that asks questions: which items, how they are put to a model, and what is kept for --resume.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/model_bundle.h"
#include "eval/task_figures.h"
#include "kv_cache/block_pool.h"
#include "kv_cache/kv_storage.h"

namespace CLI {
class App;
}

namespace pith {

struct TaskFlags {
  bool tasks = false, resume = false;
  int64_t samples = 1, max_tokens = 0, long_context = 0;
};
void AddTaskFlags(CLI::App& app, TaskFlags& flags);

// Items of the task files below `data` (a file or a folder; what is no task file is skipped), or the built-in ones where it is empty; the
// first `limit` of each file (0: all); and with --long-context generated ones, whose length the tokenizer counts.
// Errors: kInvalidArgument when --tasks is given and there is no item; those of ReadTaskFile.
absl::StatusOr<std::vector<TaskItem>> LoadTaskItems(const std::string& data, int64_t limit, uint64_t seed, const TaskFlags& flags,
                                                    const Tokenizer& tokenizer);

// Asks models the same items with the same seeds. Answers are kept in <cache>/pith/eval.db as they come.
class TaskRunner {
 public:
  // Errors: kNotFound without python3 when an item has a unit test, those of CodeSandbox::Create and of ResultStore::Open.
  static absl::StatusOr<TaskRunner> Create(std::vector<TaskItem> items, const TaskFlags& flags, uint64_t seed);

  // Answers of one model at one temperature, with progress on stderr. Weights must be loaded.
  absl::StatusOr<std::vector<ItemResult>> Ask(ModelBundle& bundle, std::optional<KvDtype> kv_cache_dtype, float temperature);

  const std::shared_ptr<const std::vector<TaskItem>>& items() const { return items_; }
  int64_t longest() const { return longest_; }  // tokens of the longest question with its answer, of those that were asked

 private:
  std::shared_ptr<const std::vector<TaskItem>> items_;
  TaskFlags flags_;
  uint64_t seed_ = 0;
  std::shared_ptr<const CodeSandbox> sandbox_;  // null where no item needs it
  std::unique_ptr<ResultStore> store_;
  int64_t longest_ = 0;
};

}  // namespace pith
