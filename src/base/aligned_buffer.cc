#include "base/aligned_buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace pith {
namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;

size_t RoundUp(size_t size, size_t unit) {
  if (size > SIZE_MAX - 2 * kHugePage) throw std::bad_alloc();
  return (size + unit - 1) / unit * unit;
}

// Fresh pages of the kernel are zero already, so no one touches them twice.
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

}  // namespace

AlignedBuffer::AlignedBuffer(size_t size_bytes) : size_(size_bytes) {
  if (size_bytes == 0) return;
  if (size_bytes >= kHugePage) {
    data_ = MapHugePages(RoundUp(size_bytes, kHugePage));
    return;
  }
  const size_t padded = RoundUp(size_bytes, kCacheLine);
  data_ = static_cast<uint8_t*>(std::aligned_alloc(kCacheLine, padded));
  if (data_ == nullptr) throw std::bad_alloc();
  std::memset(data_, 0, padded);
}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  if (this == &other) return *this;
  Release();
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

void AlignedBuffer::Release() {
  if (data_ == nullptr) return;
  if (size_ >= kHugePage) {
    munmap(data_, RoundUp(size_, kHugePage));
  } else {
    std::free(data_);
  }
}

}  // namespace pith
