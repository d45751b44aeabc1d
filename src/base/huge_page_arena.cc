#include "base/huge_page_arena.h"

#include <algorithm>

#include "base/huge_pages.h"

namespace pith {

HugePageArena::~HugePageArena() {
  for (const Chunk& chunk : chunks_) UnmapHugePages(chunk.data, chunk.size);
}

uint8_t* HugePageArena::Allocate(size_t bytes) {
  constexpr size_t kCacheLine = 64;
  const size_t padded = RoundUpSize(bytes, kCacheLine);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (chunks_.empty() || chunks_.back().size - chunks_.back().used < padded) {
    Chunk chunk{.size = RoundUpSize(std::max(padded, chunk_bytes_), kHugePage)};
    chunks_.reserve(chunks_.size() + 1);  // before the mapping, which a failure here would lose
    chunk.data = MapHugePages(chunk.size);
    chunks_.push_back(chunk);
  }
  Chunk& chunk = chunks_.back();
  uint8_t* data = chunk.data + chunk.used;
  chunk.used += padded;
  return data;
}

}  // namespace pith
