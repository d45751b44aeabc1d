// Probes of the AMX dot products: tdpbsud and tdpbf16ps on four sums, as the GEMM rows use them.
#include <immintrin.h>

#include "kernels/cpu/amx/tile_config.h"
#include "kernels/cpu/probe_tables.h"

namespace pith {
namespace {

// Ones in every tile; what they sum to, so that nothing is optimized away.
template <typename Sum, typename Multiply> int64_t SumOf(int64_t steps, const void* ones, Multiply multiply) {
  alignas(64) Sum sums[4][16 * 16];
  Configure(64, kTileRows);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_loadd(4, ones, 64);
  _tile_loadd(5, ones, 64);
  _tile_loadd(6, ones, 64);
  _tile_loadd(7, ones, 64);
  for (int64_t i = 0; i < steps; ++i) multiply();
  _tile_stored(0, sums[0], 64);
  _tile_stored(1, sums[1], 64);
  _tile_stored(2, sums[2], 64);
  _tile_stored(3, sums[3], 64);
  _tile_release();
  int64_t total = 0;
  for (const auto& tile : sums) {
    for (const Sum sum : tile) total += static_cast<int64_t>(sum);
  }
  return total;
}

int64_t MultiplyInt8(int64_t steps) {
  alignas(64) int8_t ones[16 * 64];
  for (int8_t& one : ones) one = 1;
  return SumOf<int32_t>(steps, ones, [] {
    _tile_dpbsud(0, 4, 6);
    _tile_dpbsud(1, 4, 7);
    _tile_dpbsud(2, 5, 6);
    _tile_dpbsud(3, 5, 7);
  });
}

int64_t MultiplyBf16(int64_t steps) {
  alignas(64) uint16_t ones[16 * 32];
  for (uint16_t& one : ones) one = 0x3F80;
  return SumOf<float>(steps, ones, [] {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  });
}

}  // namespace

const ProbeEntry kProbes__amx[] = {
    {.name = "probe_s8_u8_s32__amx",
     .isa = KernelIsa::kAmx,
     .limit = ProbeLimit::kInt8,
     .multiply_adds_per_step = 4 * 16 * 16 * 64,
     .multiply = MultiplyInt8},
    {.name = "probe_bf16_bf16_f32__amx",
     .isa = KernelIsa::kAmx,
     .limit = ProbeLimit::kBf16,
     .multiply_adds_per_step = 4 * 16 * 16 * 32,
     .multiply = MultiplyBf16},
};
const size_t kNumProbes__amx = sizeof(kProbes__amx) / sizeof(kProbes__amx[0]);

}  // namespace pith
