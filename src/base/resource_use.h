// What a stretch of work takes of the machine: time, CPU time and memory of this process.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace pith {

struct ResourceUse {
  double seconds = 0;             // by the clock on the wall
  double cpu_seconds = 0;         // of all threads together
  int64_t peak_memory_bytes = 0;  // the most AnonymousMemory in it
};

// Resident anonymous memory now (heap and private mappings, RssAnon of Linux): what the process cannot do without. Pages of files that are
// mapped do not count, since the kernel drops them when memory is short. 0 where the system does not say. Thread-safe.
int64_t AnonymousMemory();

// Gives memory that was freed back to the system, which the C library keeps for a while. Thread-safe.
void ReturnFreeMemory();

// CPU time of the process since it began. Thread-safe.
double ProcessCpuSeconds();

// Measures while it lives: a thread looks at the memory every few milliseconds, so what is held for less can be missed. Any thread may
// call, one at a time. May throw std::system_error when no thread can be started.
class ResourceMeter {
 public:
  ResourceMeter();
  ~ResourceMeter();
  ResourceMeter(const ResourceMeter&) = delete;
  ResourceMeter& operator=(const ResourceMeter&) = delete;

  // Since the object was made or Lap was last called.
  ResourceUse Lap();

 private:
  void Look();
  void Watch();

  std::atomic<int64_t> peak_{0};
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::chrono::steady_clock::time_point start_;
  double cpu_start_ = 0;
  std::thread watcher_;  // last, so that it finds the rest
};

}  // namespace pith
