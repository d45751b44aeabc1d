// Memory for weights: pieces cut one after the other from large mappings that ask for huge pages.
//
// A layer's matrix is often smaller than a huge page. With pages of 4 KiB its reading stalls on address translation (inside a virtual
// machine it fell to a sixth of the bandwidth), and a huge page for each matrix would waste most of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace pith {

class HugePageArena {
 public:
  // Mappings of `chunk_bytes` or, for larger pieces, of the piece. Untouched memory of a mapping costs nothing.
  explicit HugePageArena(size_t chunk_bytes = size_t{32} << 20) : chunk_bytes_(chunk_bytes) {}
  ~HugePageArena();
  HugePageArena(const HugePageArena&) = delete;
  HugePageArena& operator=(const HugePageArena&) = delete;

  // Zeroed bytes, 64-byte aligned, that live as long as the arena. Thread-safe. Throws std::bad_alloc.
  uint8_t* Allocate(size_t bytes);

 private:
  struct Chunk {
    uint8_t* data = nullptr;
    size_t size = 0, used = 0;
  };

  const size_t chunk_bytes_;
  std::mutex mutex_;
  std::vector<Chunk> chunks_;  // guarded by mutex_
};

}  // namespace pith
