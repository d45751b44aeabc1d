#include "base/huge_pages.h"

#include <sys/mman.h>

#include <new>

namespace pith {

size_t RoundUpSize(size_t size, size_t unit) {
  if (size > SIZE_MAX - 2 * kHugePage) throw std::bad_alloc();
  return (size + unit - 1) / unit * unit;
}

uint8_t* MapHugePages(size_t size) {
  void* map = mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) throw std::bad_alloc();
  uint8_t* begin = static_cast<uint8_t*>(map);
  const size_t head = (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
  if (head > 0) munmap(begin, head);
  munmap(begin + head + size, kHugePage - head);
  madvise(begin + head, size, MADV_HUGEPAGE);
  return begin + head;
}

void UnmapHugePages(uint8_t* data, size_t size) { munmap(data, size); }

}  // namespace pith
