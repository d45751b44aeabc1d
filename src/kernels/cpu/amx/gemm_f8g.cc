// e4m3 codes in groups times bf16 or fp8 activations (which are bf16 bits with a scale per row): many rows by AMX tiles, codes decoded to
// bf16 a chunk at a time, few rows by FMA in the order of the tile instruction, with the same bits. Arithmetic: gemm_bf16_tiles.h.
#include "kernels/cpu/amx/gemm_bf16_tiles.h"
#include "kernels/cpu/gemm_f8g_row.h"
#include "kernels/cpu/tables.h"

namespace pith {
extern const GemmKernelEntry gemm_bf16_f8g_f32__amx;
extern const GemmKernelEntry gemm_fp8_f8g_f32__amx;

namespace {

constexpr int64_t kDirectRows = 4;  // up to here codes are decoded in registers; measured: tiles are slower

// A row's activations, those of even k and those of odd k apart.
struct SplitRow {
  float* even;
  float* odd;
};

void SplitPairs(const GemmParams& params, SplitRow (&rows)[kDirectRows], float* out) {
  const int64_t pairs = params.problem.k / 2;
  for (int64_t r = 0; r < params.m; ++r, out += 2 * pairs) {
    rows[r] = {.even = out, .odd = out + pairs};
    const uint16_t* in = params.activation + r * params.activation_stride;
    for (int64_t i = 0; i < pairs; ++i) {
      rows[r].even[i] = __builtin_bit_cast(float, static_cast<uint32_t>(in[2 * i]) << 16);
      rows[r].odd[i] = __builtin_bit_cast(float, static_cast<uint32_t>(in[2 * i + 1]) << 16);
    }
  }
}

// The arithmetic of the tile instruction in vector registers.
template <int R, int P>
__attribute__((noinline)) void ComputeDirect(const GemmParams& params, const PanelLayout& layout, const SplitRow (&rows)[kDirectRows],
                                             int64_t panel) {
  alignas(64) float total[R][P][kGemmPanel] = {}, sum[R][P][kGemmPanel] = {};
  const uint8_t* begin = params.weight + panel * layout.panel_bytes;
  PrefetchScales<P>(layout, begin);
  const uint8_t* codes = begin + layout.code_begin;
  for (int64_t k = 0; k < params.problem.k;) {
    __m512 even[R][P] = {}, odd[R][P] = {};
    for (int64_t pair = k / 2; pair < (k + kTileK) / 2; ++pair, codes += kW8UnitBytes) {
      if (pair % 2 == 0) PrefetchAhead<P>(layout, begin, codes - begin);
#pragma GCC unroll 2
      for (int p = 0; p < P; ++p) {
        const __m512i weights = Bf16FromE4m3(_mm512_cvtepu8_epi16(Lanes::Load256(codes + p * layout.panel_bytes)));
        const __m512 even_weights = _mm512_castsi512_ps(_mm512_slli_epi32(weights, 16));
        const __m512 odd_weights = _mm512_castsi512_ps(_mm512_and_si512(weights, _mm512_set1_epi32(~0xFFFF)));
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
          even[r][p] = _mm512_fmadd_ps(even_weights, _mm512_set1_ps(rows[r].even[pair]), even[r][p]);
          odd[r][p] = _mm512_fmadd_ps(odd_weights, _mm512_set1_ps(rows[r].odd[pair]), odd[r][p]);
        }
      }
    }
    k += kTileK;
    const int64_t g = (k - 1) / layout.group_size;
    const bool closes_group = k % layout.group_size == 0;
#pragma GCC unroll 2
    for (int p = 0; p < P; ++p) {
      const __m512 scale = closes_group ? LoadGroupValue<Lanes>(begin + p * layout.panel_bytes, layout, g) : _mm512_setzero_ps();
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const __m512 result = _mm512_add_ps(_mm512_load_ps(sum[r][p]), _mm512_add_ps(even[r][p], odd[r][p]));
        _mm512_store_ps(sum[r][p], closes_group ? _mm512_setzero_ps() : result);
        if (closes_group) _mm512_store_ps(total[r][p], _mm512_fmadd_ps(result, scale, _mm512_load_ps(total[r][p])));
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int p = 0; p < P; ++p) StorePanel(params, r, panel + p, total[r][p]);
  }
}

template <int R> void DispatchDirect(const GemmParams& params, const SplitRow (&rows)[kDirectRows]) {
  if constexpr (R > 1) {
    if (params.m < R) return DispatchDirect<R - 1>(params, rows);
  }
  const PanelLayout layout = F8Layout(params.problem);
  int64_t panel = params.panel_begin;
  for (; panel + 2 <= params.panel_end; panel += 2) ComputeDirect<R, 2>(params, layout, rows, panel);
  if (panel < params.panel_end) ComputeDirect<R, 1>(params, layout, rows, panel);
}

void RunDirect(const GemmParams& params) {
  alignas(64) float split[kDirectRows * kMaxTiledK];
  SplitRow rows[kDirectRows];
  SplitPairs(params, rows, split);
  DispatchDirect<kDirectRows>(params, rows);
}

void Run(const GemmParams& params) {
  constexpr unsigned kSubnormalsAreZero = 0x8040;  // inputs and results, as for the tile instruction
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | kSubnormalsAreZero);
  params.m > kDirectRows ? RunTiles<F8Tiles>(params) : RunDirect(params);
  _mm_setcsr(before);
}

const char* CanImplement(const GemmProblem& problem) {
  const char* reason = CanTile(problem);
  if (reason != nullptr) return reason;
  if (problem.group_size % kTileK != 0) return "group_size % 32 != 0";
  return CanPrepackF8(problem);
}

constexpr GemmKernelEntry TiledRow(const char* name, GemmActivation activation) {
  GemmKernelEntry row = F8Row(name, activation, KernelIsa::kAmx, Run);
  row.can_implement = CanImplement;
  return row;
}

}  // namespace

const GemmKernelEntry gemm_bf16_f8g_f32__amx = TiledRow("gemm_bf16_f8g_f32__amx", GemmActivation::kBf16);
const GemmKernelEntry gemm_fp8_f8g_f32__amx = TiledRow("gemm_fp8_f8g_f32__amx", GemmActivation::kFp8);

}  // namespace pith
