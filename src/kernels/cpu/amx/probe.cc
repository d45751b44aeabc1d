// Probe of the AMX dot product: tdpbsud on four sums, as the GEMM rows use it.
#include <immintrin.h>

#include "kernels/cpu/amx/tile_config.h"
#include "kernels/cpu/probe_tables.h"

namespace pith {
namespace {

int64_t MultiplyInt8(int64_t steps) {
  alignas(64) int8_t ones[16 * 64];
  alignas(64) int32_t sums[16 * 16];
  for (int8_t& one : ones) one = 1;
  Configure(64, kTileRows);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, ones, 64);
  _tile_loadd(5, ones, 64);
  _tile_loadd(6, ones, 64);
  _tile_loadd(7, ones, 64);
  for (int64_t i = 0; i < steps; ++i) {
    _tile_dpbsud(0, 4, 6);
    _tile_dpbsud(1, 4, 7);
    _tile_dpbsud(2, 5, 6);
    _tile_dpbsud(3, 5, 7);
  }
  int64_t total = 0;
  const auto add = [&] {
    for (const int32_t sum : sums) total += sum;
  };
  _tile_stored(0, sums, 64);
  add();
  _tile_stored(1, sums, 64);
  add();
  _tile_stored(2, sums, 64);
  add();
  _tile_stored(3, sums, 64);
  add();
  _tile_release();
  return total;
}

}  // namespace

const ProbeEntry kProbes__amx[] = {
    {.name = "probe_s8_u8_s32__amx",
     .isa = KernelIsa::kAmx,
     .limit = ProbeLimit::kInt8,
     .multiply_adds_per_step = 4 * 16 * 16 * 64,
     .multiply = MultiplyInt8},
};
const size_t kNumProbes__amx = sizeof(kProbes__amx) / sizeof(kProbes__amx[0]);

}  // namespace pith
