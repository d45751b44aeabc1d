// Zeroed memory for tensors: 64-byte aligned; from 2 MiB on its own mapping, aligned to 2 MiB, with transparent huge pages advised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace pith {

// Move-only; a moved-from buffer is empty. Large buffers take memory only where they are written (by the thread that writes first).
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  // Throws std::bad_alloc when the address space is exhausted: callers check sizes that come from input before.
  explicit AlignedBuffer(size_t size_bytes);
  AlignedBuffer(AlignedBuffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  ~AlignedBuffer() { Release(); }

  // Makes room for `size_bytes` where there is less; the content is lost then, and the old memory is freed before the new is taken. Throws
  // std::bad_alloc, and leaves the buffer empty.
  void Reserve(size_t size_bytes);

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void Release();

  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace pith
