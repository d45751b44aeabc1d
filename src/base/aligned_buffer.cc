#include "base/aligned_buffer.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/huge_pages.h"

namespace pith {
namespace {

constexpr size_t kCacheLine = 64;

}  // namespace

AlignedBuffer::AlignedBuffer(size_t size_bytes) : size_(size_bytes) {
  if (size_bytes == 0) return;
  if (size_bytes >= kHugePage) {
    data_ = MapHugePages(RoundUpSize(size_bytes, kHugePage));
    return;
  }
  const size_t padded = RoundUpSize(size_bytes, kCacheLine);
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

void AlignedBuffer::Reserve(size_t size_bytes) {
  if (size_bytes <= size_) return;
  *this = AlignedBuffer();
  *this = AlignedBuffer(size_bytes);
}

void AlignedBuffer::Release() {
  if (data_ == nullptr) return;
  if (size_ >= kHugePage) {
    UnmapHugePages(data_, RoundUpSize(size_, kHugePage));
  } else {
    std::free(data_);
  }
}

}  // namespace pith
