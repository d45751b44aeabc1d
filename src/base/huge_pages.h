// Anonymous memory that asks the kernel for huge pages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pith {

constexpr size_t kHugePage = size_t{2} << 20;

// `size` zeroed bytes, a multiple of kHugePage, aligned to kHugePage. Pages come when they are touched. Throws std::bad_alloc.
uint8_t* MapHugePages(size_t size);
void UnmapHugePages(uint8_t* data, size_t size);

// The next multiple of `unit`. Throws std::bad_alloc for a size no machine has.
size_t RoundUpSize(size_t size, size_t unit);

}  // namespace pith
