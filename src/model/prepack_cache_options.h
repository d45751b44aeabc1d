// Whether a load goes through a cache of prepacked weights, and what became of it: docs/prepack_cache.md.
#pragma once

#include <cstdint>
#include <string>

namespace pith {

struct PrepackCacheOptions {
  std::string directory;  // made when it is not there; empty: no cache
  std::string build;      // of this program: see PrepackKey
};

// What became of the cache in one load.
struct PrepackCacheReport {
  std::string path;            // of the file; empty: no cache was asked for
  bool used = false;           // the weights came from it
  uint64_t bytes_written = 0;  // of a new file
  std::string warning;         // why a file was there and not used, or could not be written; else empty
};

}  // namespace pith
