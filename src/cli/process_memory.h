// What the system says of memory: Linux /proc. 0 where a value is not to be had.
#pragma once

#include <cstdint>

namespace pith {

// Anonymous resident memory of this process (RssAnon): heap and private mappings, without files mapped from disk. Gives free heap pages
// back first, so that what was only needed in between does not count.
int64_t AnonymousMemoryBytes();

// Memory that can still be had without swapping (MemAvailable).
int64_t AvailableMemoryBytes();

}  // namespace pith
