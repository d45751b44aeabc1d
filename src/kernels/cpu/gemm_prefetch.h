// How the GEMM rows read weights ahead of use. A few rows are bound by reading, and what limits reading is how many cache lines are on
// their way at once, so panels are prefetched into the level-2 cache, exactly the lines that will be used and each of them once. Two panels
// side by side reach more of the memory's bandwidth than one (measured: 0.94 instead of 0.83 of a plain read of dense weights).
#pragma once

#include <cstdint>

#include "kernels/cpu/gemm_layout.h"
#include "kernels/cpu/gemm_store.h"

namespace pith {
namespace {

constexpr int64_t kPrefetchBytes = 4096;  // ahead in each panel

// Prefetches what belongs `kPrefetchBytes` after byte `position` of `kPanels` panels that are read side by side: past the end of a panel
// that is in the panel that will be read in its place, kPanels further.
template <int kPanels> PITH_ALWAYS_INLINE void PrefetchAhead(const PanelLayout& layout, const uint8_t* panel, int64_t position) {
  const int64_t ahead = position + kPrefetchBytes;
  const uint8_t* line = panel + (ahead < layout.panel_bytes ? ahead : ahead + (kPanels - 1) * layout.panel_bytes);
#pragma GCC unroll 4
  for (int p = 0; p < kPanels; ++p) __builtin_prefetch(line + p * layout.panel_bytes, 0, 2);
}

// The loops over codes prefetch as many lines as a panel has codes; the scales that lie before them are as many more.
template <int kPanels> PITH_ALWAYS_INLINE void PrefetchScales(const PanelLayout& layout, const uint8_t* panel) {
  for (int64_t position = 0; position < layout.code_begin; position += 64) PrefetchAhead<kPanels>(layout, panel, position);
}

}  // namespace
}  // namespace pith
