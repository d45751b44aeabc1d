// Every GEMM row on matrices of real models, one thread, weights read from memory (copies are used in turn).
// Each iteration times the kernel and a plain read of as many bytes of another copy, so that both see the same machine. Counters, all from
// the best iteration (others share the machine): GB/s of prepacked weights, GFLOPS, read = kernel rate / plain read rate, and
// peak = GFLOPS / the rate of the row's multiply instruction (f32 FMA, or bf16 dot products).
//   gemm_bench --benchmark_filter='w4g.*avx512_vnni/qwen05_down'
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/registry.h"
#include "machine_limits.h"

namespace pith {
namespace {

struct Shape {
  const char* name;
  int64_t n, k, group_size;
};

constexpr Shape kShapes[] = {
    {"smollm2_q", 576, 576, 64},      {"smollm2_up", 1536, 576, 64},    {"smollm2_down", 576, 1536, 64},
    {"qwen05_up", 4864, 896, 32},     {"qwen05_down", 896, 4864, 32},   {"qwen15_up", 8960, 1536, 128},
    {"qwen15_down", 1536, 8960, 128}, {"smollm2_head", 49152, 576, 64}, {"qwen05_head", 151936, 896, 32},
};
constexpr int64_t kRows[] = {1, 2, 4, 8, 64, 512};
constexpr int64_t kColdBytes = int64_t{96} << 20;  // three times the last-level cache of the machine measured

// 12 independent chains of 32 products.
__attribute__((target("avx512f,avx512bf16"))) float DotChains(int64_t steps) {
  __m512 acc[12];
  for (auto& a : acc) a = _mm512_setzero_ps();
  __m512i factor = _mm512_set1_epi16(0x3F80);
  for (int64_t i = 0; i < steps; ++i) {
    asm volatile("" : "+v"(factor));
#pragma GCC unroll 12
    for (auto& a : acc) a = _mm512_dpbf16_ps(a, (__m512bh)factor, (__m512bh)factor);
  }
  for (int i = 1; i < 12; ++i) acc[0] = _mm512_add_ps(acc[0], acc[i]);
  return _mm512_cvtss_f32(acc[0]);
}

double PeakFlopsPerSecond(Isa isa) {
  if (isa < Isa::kAvx512Vnni) return FmaFlopsPerSecond(isa);
  constexpr int64_t kSteps = 100000;
  double best = 1e9;
  volatile float sink = 0.0f;
  for (int i = 0; i < 5; ++i) best = std::min(best, SecondsOf([&] { sink = DotChains(kSteps); }));
  return 2.0 * 12.0 * 32.0 * kSteps / best;
}

// A plain read, as wide as the CPU can.
__attribute__((target("avx512f"))) uint64_t ReadAvx512(const uint8_t* data, int64_t bytes) {
  __m512i sum[4] = {};
  for (int64_t i = 0; i + 256 <= bytes; i += 256) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) sum[v] = _mm512_xor_si512(sum[v], _mm512_load_si512(data + i + 64 * v));
  }
  alignas(64) uint64_t lanes[8];
  _mm512_store_si512(lanes, _mm512_xor_si512(_mm512_xor_si512(sum[0], sum[1]), _mm512_xor_si512(sum[2], sum[3])));
  return lanes[0];
}
uint64_t ReadSse(const uint8_t* data, int64_t bytes) {
  __m128i sum[4] = {};
  for (int64_t i = 0; i + 64 <= bytes; i += 64) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) sum[v] = _mm_xor_si128(sum[v], _mm_load_si128(reinterpret_cast<const __m128i*>(data + i + 16 * v)));
  }
  return static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_xor_si128(_mm_xor_si128(sum[0], sum[1]), _mm_xor_si128(sum[2], sum[3]))));
}

GemmProblem ProblemOf(const GemmKernelEntry* row, const Shape& shape) {
  GemmProblem problem{.n = shape.n, .k = shape.k};
  if (row->weight == GemmWeight::kBf16) return problem;
  problem.group_size = shape.group_size;
  problem.bits = row->weight == GemmWeight::kW8Grouped ? 8 : 4;
  problem.scale = GemmScale::kF16;
  return problem;
}

void BenchGemm(benchmark::State& state, const GemmKernelEntry* row, const Shape& shape, int64_t m) {
  const GemmProblem problem = ProblemOf(row, shape);
  const auto bytes = static_cast<int64_t>(row->prepack_bytes(problem)) / 64 * 64;
  const int64_t copies = std::max<int64_t>(2, kColdBytes / bytes);
  AlignedBuffer weight(static_cast<size_t>(copies * bytes));
  for (int64_t i = 0; i < copies * bytes; ++i) weight.data()[i] = static_cast<uint8_t>((i * 2654435761 >> 13) & 0x3F);  // never NaN
  std::vector<uint16_t> activation(static_cast<size_t>(m * shape.k), 0x3F80);
  std::vector<float> out(static_cast<size_t>(m * shape.n));
  GemmParams params{.problem = problem,
                    .activation = activation.data(),
                    .activation_stride = shape.k,
                    .m = m,
                    .out = out.data(),
                    .out_stride = shape.n,
                    .panel_end = (shape.n + kGemmPanel - 1) / kGemmPanel};
  const double peak = PeakFlopsPerSecond(static_cast<Isa>(row->isa));
  const bool wide = DetectIsa() >= Isa::kAvx512;
  double best_kernel = 1e9, best_read = 1e9;
  volatile uint64_t sink = 0;
  int64_t copy = 0;
  for (auto _ : state) {
    const uint8_t* read = weight.data() + copy++ % copies * bytes;
    best_read = std::min(best_read, SecondsOf([&] { sink = wide ? ReadAvx512(read, bytes) : ReadSse(read, bytes); }));
    params.weight = weight.data() + copy++ % copies * bytes;
    const double seconds = SecondsOf([&] { row->run(params); });
    best_kernel = std::min(best_kernel, seconds);
    state.SetIterationTime(seconds);
  }
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
  state.counters["GB/s"] = static_cast<double>(bytes) / best_kernel / 1e9;
  state.counters["GFLOPS"] = flops / best_kernel / 1e9;
  state.counters["read"] = best_read / best_kernel;
  if (peak > 0) state.counters["peak"] = flops / best_kernel / peak;
}

void RegisterAll() {
  for (const GemmKernelEntry* row : AllGemmKernels()) {
    if (static_cast<int>(row->isa) > static_cast<int>(DetectIsa())) continue;
    for (const Shape& shape : kShapes) {
      for (const int64_t m : kRows) {
        // A head computes few rows; scalar rows are oracles, their large products take minutes.
        const bool scalar = row->isa == KernelIsa::kScalar;
        if (shape.n > 40000 && (m > 8 || scalar)) continue;
        if (scalar && m > 8) continue;
        const std::string name = std::string(row->name) + "/" + shape.name + "/m" + std::to_string(m);
        benchmark::RegisterBenchmark(name.c_str(), [=](auto& s) { BenchGemm(s, row, shape, m); })
            ->UseManualTime()
            ->MinTime(0.1)
            ->Unit(benchmark::kMicrosecond);
      }
    }
  }
}

const bool kRegistered = (RegisterAll(), true);

}  // namespace
}  // namespace pith
