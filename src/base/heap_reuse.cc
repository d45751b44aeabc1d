#include "base/heap_reuse.h"

#include <cstdlib>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace pith {

#if defined(__GLIBC__)

namespace {

// Blocks from this size on are mapped on their own and unmapped when freed; glibc allows no more than 32 MiB.
constexpr int kMapFrom = 32 << 20;
constexpr int kKeepFree = 1 << 30, kKeepFreeAfter = 64 << 20;

}  // namespace

HeapReuse::HeapReuse() {
  mallopt(M_MMAP_THRESHOLD, kMapFrom);
  mallopt(M_TRIM_THRESHOLD, kKeepFree);
}

HeapReuse::~HeapReuse() {
  mallopt(M_TRIM_THRESHOLD, kKeepFreeAfter);
  malloc_trim(0);
}

#else

HeapReuse::HeapReuse() = default;
HeapReuse::~HeapReuse() = default;

#endif

}  // namespace pith
