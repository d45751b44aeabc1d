#include "base/heap_reuse.h"

#include <cstdlib>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace pith {

#if defined(__GLIBC__)

namespace {

// Blocks from this size on are mapped on their own and unmapped when freed; glibc allows no more than 32 MiB.
constexpr int kMapFrom = 32 << 20, kDefaultMapFrom = 128 << 10;
constexpr int kKeepFree = 1 << 30, kDefaultKeepFree = 128 << 10;

}  // namespace

HeapReuse::HeapReuse() {
  mallopt(M_MMAP_THRESHOLD, kMapFrom);
  mallopt(M_TRIM_THRESHOLD, kKeepFree);
}

HeapReuse::~HeapReuse() {
  mallopt(M_MMAP_THRESHOLD, kDefaultMapFrom);
  mallopt(M_TRIM_THRESHOLD, kDefaultKeepFree);
  malloc_trim(0);
}

#else

HeapReuse::HeapReuse() = default;
HeapReuse::~HeapReuse() = default;

#endif

}  // namespace pith
