#include "base/resource_use.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace pith {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(3);

}  // namespace

int64_t AnonymousMemory() {
  // Never closed: it is read for as long as the process lives.
  static const int statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  static const int64_t page = sysconf(_SC_PAGESIZE);
  char text[128];
  const ssize_t size = statm < 0 ? -1 : pread(statm, text, sizeof(text) - 1, 0);
  if (size <= 0) return 0;
  text[size] = '\0';
  long long resident = 0, shared = 0;  // in pages; shared: of files and shared memory
  if (std::sscanf(text, "%*s %lld %lld", &resident, &shared) != 2 || resident < shared) return 0;
  return (resident - shared) * page;
}

void ReturnFreeMemory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

double ProcessCpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

ResourceMeter::ResourceMeter() : start_(std::chrono::steady_clock::now()), cpu_start_(ProcessCpuSeconds()), watcher_([this] { Watch(); }) {
  Look();
}

ResourceMeter::~ResourceMeter() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_one();
  watcher_.join();
}

void ResourceMeter::Look() {
  const int64_t now = AnonymousMemory();
  int64_t peak = peak_.load();
  while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
  }
}

void ResourceMeter::Watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopped_.wait_for(lock, kInterval, [this] { return stop_; })) Look();
}

ResourceUse ResourceMeter::Lap() {
  Look();
  const auto now = std::chrono::steady_clock::now();
  const double cpu = ProcessCpuSeconds();
  const ResourceUse use{.seconds = std::chrono::duration<double>(now - start_).count(),
                        .cpu_seconds = cpu - cpu_start_,
                        .peak_memory_bytes = peak_.exchange(AnonymousMemory())};
  start_ = now;
  cpu_start_ = cpu;
  return use;
}

}  // namespace pith
