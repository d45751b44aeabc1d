#include "cli/process_memory.h"

#include <malloc.h>

#include <fstream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace pith {
namespace {

// "MemAvailable:   123 kB" of `path`, in bytes.
int64_t ReadKilobytes(const char* path, const char* key) {
  std::ifstream info(path);
  std::string line;
  while (std::getline(info, line)) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    int64_t kilobytes = 0;
    if (parts.size() >= 2 && parts[0] == key && absl::SimpleAtoi(parts[1], &kilobytes)) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace

int64_t AnonymousMemoryBytes() {
  malloc_trim(0);
  return ReadKilobytes("/proc/self/status", "RssAnon:");
}

int64_t AvailableMemoryBytes() { return ReadKilobytes("/proc/meminfo", "MemAvailable:"); }

}  // namespace pith
