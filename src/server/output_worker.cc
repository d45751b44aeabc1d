#include "server/output_worker.h"

#include <exception>
#include <utility>

#include "base/log.h"

namespace pith {

OutputWorker::OutputWorker() : thread_([this] { Loop(); }) {}

OutputWorker::~OutputWorker() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void OutputWorker::Post(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  wake_.notify_one();
}

void OutputWorker::RunJob(const std::function<void()>& job) {
  try {
    job();
  } catch (const std::exception& error) {
    spdlog::error("output: {}", error.what());
  }
}

void OutputWorker::Loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    std::deque<std::function<void()>> batch = std::exchange(jobs_, {});
    lock.unlock();
    for (std::function<void()>& job : batch) RunJob(job);
    batch.clear();  // what jobs hold is let go outside the lock
    lock.lock();
  }
}

}  // namespace pith
