// Keeps freed memory in the process while an object lives, for phases that allocate and free buffers of megabytes again and again: by
// default the C library gives such buffers back at once, and the kernel clears the pages anew each time.
#pragma once

namespace pith {

// Process-wide; one at a time. The end gives back what is unused. From then on blocks below 32 MiB still come from the heap, which keeps up
// to 64 MiB of freed memory: glibc's own adjustment of both thresholds stays off. Does nothing where the C library is not glibc.
class HeapReuse {
 public:
  HeapReuse();
  ~HeapReuse();
  HeapReuse(const HeapReuse&) = delete;
  HeapReuse& operator=(const HeapReuse&) = delete;
};

}  // namespace pith
