// A pool for the data-parallel loops of one engine: Run hands every thread its index, and returns when all are done.
//
// Workers spin briefly after a job and then park in the kernel, so a pool costs nothing while idle and a busy neighbour on the
// same core costs little. The caller works as thread 0. Which thread computes what must never change a result: kernels keep
// that promise by giving each output to exactly one thread and summing in a fixed order.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace pith {

class ThreadPool {
 public:
  // num_threads >= 1 counts the caller; 0 means the number of usable CPUs (affinity mask).
  // Throws std::system_error when a thread cannot be started.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_; }

  // Calls job(thread_index) once for every index in [0, num_threads). Not reentrant (checked); one caller at a time.
  // What a job throws (std::bad_alloc) is thrown to the caller once every thread is done; of several, the first.
  void Run(absl::FunctionRef<void(int)> job);

  // Splits [0, count) into num_threads nearly equal contiguous ranges, each a multiple of `grain` (but the last), and calls
  // body(begin, end, thread_index) for the non-empty ones. The split depends only on count, grain and num_threads.
  void ParallelFor(int64_t count, int64_t grain, absl::FunctionRef<void(int64_t, int64_t, int)> body);

  // Threads grab chunks of `grain` from [0, count) as they become free; for uneven work.
  void ParallelForDynamic(int64_t count, int64_t grain, absl::FunctionRef<void(int64_t, int64_t, int)> body);

 private:
  void WorkerLoop(int index);
  void RunJob(int index) noexcept;
  void StopWorkers();

  const int num_threads_;
  std::vector<std::thread> workers_;
  const absl::FunctionRef<void(int)>* job_ = nullptr;
  alignas(64) std::atomic<uint32_t> generation_{0};  // bumped for each job; the futex workers park on
  alignas(64) std::atomic<int> pending_{0};          // workers that have not finished the current job
  std::atomic<bool> stop_{false};
  std::mutex error_mutex_;
  std::exception_ptr error_;  // the first one a job threw
};

// CPUs this process may run on (affinity mask), at least 1.
int UsableCpus();

}  // namespace pith
