#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace pith {
namespace {

constexpr int kSpinsBeforePark = 2000;  // a few tens of microseconds: longer than the gap between two operators of a layer

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

int UsableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

ThreadPool::ThreadPool(int num_threads) : num_threads_(num_threads > 0 ? num_threads : UsableCpus()) {
  try {
    for (int i = 1; i < num_threads_; ++i) workers_.emplace_back([this, i] { WorkerLoop(i); });
  } catch (...) {
    StopWorkers();
    throw;
  }
}

ThreadPool::~ThreadPool() { StopWorkers(); }

void ThreadPool::StopWorkers() {
  stop_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::WorkerLoop(int index) {
  uint32_t seen = 0;
  for (;;) {
    uint32_t current = generation_.load(std::memory_order_acquire);
    for (int spin = 0; current == seen && spin < kSpinsBeforePark; ++spin) {
      Pause();
      current = generation_.load(std::memory_order_acquire);
    }
    while (current == seen) {
      generation_.wait(seen, std::memory_order_acquire);
      current = generation_.load(std::memory_order_acquire);
    }
    seen = current;
    if (stop_.load(std::memory_order_relaxed)) return;
    RunJob(index);
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_one();
  }
}

void ThreadPool::RunJob(int index) noexcept {
  try {
    (*job_)(index);
  } catch (...) {
    const std::lock_guard lock(error_mutex_);
    if (error_ == nullptr) error_ = std::current_exception();
  }
}

void ThreadPool::Run(absl::FunctionRef<void(int)> job) {
  CHECK(job_ == nullptr);
  job_ = &job;
  pending_.store(num_threads_ - 1, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  RunJob(0);
  int pending = pending_.load(std::memory_order_acquire);
  for (int spin = 0; pending != 0 && spin < kSpinsBeforePark; ++spin) {
    Pause();
    pending = pending_.load(std::memory_order_acquire);
  }
  while (pending != 0) {
    pending_.wait(pending, std::memory_order_acquire);
    pending = pending_.load(std::memory_order_acquire);
  }
  job_ = nullptr;
  if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadPool::ParallelFor(int64_t count, int64_t grain, absl::FunctionRef<void(int64_t, int64_t, int)> body) {
  CHECK(grain > 0);
  if (count <= 0) return;
  const int64_t units = (count + grain - 1) / grain;
  Run([&](int thread) {
    const int64_t begin = units * thread / num_threads_ * grain;
    const int64_t end = std::min(count, units * (thread + 1) / num_threads_ * grain);
    if (begin < end) body(begin, end, thread);
  });
}

void ThreadPool::ParallelForDynamic(int64_t count, int64_t grain, absl::FunctionRef<void(int64_t, int64_t, int)> body) {
  CHECK(grain > 0);
  if (count <= 0) return;
  std::atomic<int64_t> next{0};
  Run([&](int thread) {
    for (;;) {
      const int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= count) return;
      body(begin, std::min(count, begin + grain), thread);
    }
  });
}

}  // namespace pith
