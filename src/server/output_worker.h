// One thread that turns the engine's tokens into text and JSON, so that the engine thread only hands them on. Jobs run in the order given.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace pith {

class OutputWorker {
 public:
  OutputWorker();
  // Runs what was posted, then ends.
  ~OutputWorker();
  OutputWorker(const OutputWorker&) = delete;
  OutputWorker& operator=(const OutputWorker&) = delete;

  // Thread-safe.
  void Post(std::function<void()> job);

 private:
  static void RunJob(const std::function<void()>& job);
  void Loop();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace pith
