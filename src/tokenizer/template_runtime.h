// What the operations of one rendering share: its budget, its clock and the objects that must be taken apart at its end.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tokenizer/template_budget.h"
#include "tokenizer/template_value.h"

namespace pith::jinja {

// Not thread-safe; one per rendering. Values must not outlive it.
class Runtime {
 public:
  Runtime(const ChatTemplateLimits& limits, int64_t now_unix_seconds) : now_unix_seconds_(now_unix_seconds), budget_(limits) {}
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  Budget& budget() { return budget_; }
  int64_t now_unix_seconds() const { return now_unix_seconds_; }
  // Keeps an object that could become part of a cycle until the end, when it is emptied.
  void Retain(std::shared_ptr<MutableObject> object) { retained_.push_back(std::move(object)); }

 private:
  const int64_t now_unix_seconds_;
  Budget budget_;
  std::vector<std::shared_ptr<MutableObject>> retained_;
};

}  // namespace pith::jinja
