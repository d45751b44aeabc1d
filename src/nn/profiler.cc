#include "nn/profiler.h"

#include <chrono>

namespace pith {
namespace {

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void Profiler::BeginPass() {
  ++num_passes_;
  begin_ns_ = NowNs();
}

void Profiler::EndOperator(const char* name, int64_t layer, int64_t rows, int threads, absl::FunctionRef<void(OperatorRecord&)> describe) {
  const int64_t end_ns = NowNs();
  OperatorRecord& record = records_.emplace_back();
  record.name = name;
  record.layer = layer;
  record.rows = rows;
  record.threads = threads;
  record.begin_ns = begin_ns_;
  record.end_ns = end_ns;
  describe(record);
  begin_ns_ = NowNs();
}

void Profiler::Clear() {
  records_.clear();
  num_passes_ = 0;
}

}  // namespace pith
