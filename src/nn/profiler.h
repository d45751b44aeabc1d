// Where the time of a forward pass goes: one record per operator, in the order they ran, with what it moved and computed.
//
//   Profiler profiler;
//   model->SetProfiler(&profiler);  // null by default; then each operator costs one comparison
//   model->Forward(...);
//   profiler.records();
//
// The records of a pass follow each other without gaps: an operator begins where the one before it ended, so waiting at barriers counts
// for the operator that waits, and the sum of the times is the time of the pass. Not thread-safe: used by the thread that calls Forward.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace pith {

// What an operator has to move and compute at least, whatever the caches do.
struct OperatorWork {
  int64_t weight_bytes = 0;      // prepacked weights, with scales and biases
  int64_t activation_bytes = 0;  // inputs read and outputs written
  int64_t kv_bytes = 0;          // keys and values read or written
  int64_t operations = 0;        // a multiply-add is two; 0 for element-wise operators, which bytes bound

  int64_t bytes() const { return weight_bytes + activation_bytes + kv_bytes; }
  OperatorWork& operator+=(const OperatorWork& other) {
    weight_bytes += other.weight_bytes;
    activation_bytes += other.activation_bytes;
    kv_bytes += other.kv_bytes;
    operations += other.operations;
    return *this;
  }
};

struct OperatorRecord {
  const char* name = "";  // static text: "embedding", "norm", "qkv", "rope_kv", "attention", "o", "gate_up", "down", "lm_head"
  int64_t layer = -1;     // -1: outside the layers
  int64_t rows = 0;
  int threads = 0;     // of the pool; an operator with little work leaves some of them idle
  std::string kernel;  // kernel rows, joined by "+" when a matrix has several
  OperatorWork work;
  int64_t begin_ns = 0, end_ns = 0;  // of the steady clock

  int64_t duration_ns() const { return end_ns - begin_ns; }
};

class Profiler {
 public:
  // The next operator begins now.
  void BeginPass();
  // The operator that began last ends now. `threads`: of the pool it ran on, whether or not each had work. `describe` fills in kernel and
  // work; its own time counts for no operator.
  void EndOperator(const char* name, int64_t layer, int64_t rows, int threads, absl::FunctionRef<void(OperatorRecord&)> describe);

  const std::vector<OperatorRecord>& records() const { return records_; }
  int64_t num_passes() const { return num_passes_; }
  void Clear();

 private:
  std::vector<OperatorRecord> records_;
  int64_t num_passes_ = 0, begin_ns_ = 0;
};

}  // namespace pith
