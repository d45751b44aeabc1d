// Every GEMM row on matrices of real models, one thread, weights read from memory (copies are used in turn).
// Each iteration times the kernel and a plain read of as many bytes of another copy, so that both see the same machine. Counters, all from
// the best iteration (others share the machine): GB/s of prepacked weights, GFLOPS, read = kernel rate / plain read rate, and
// peak = GFLOPS / the rate of what the row multiplies with (GemmKernelEntry::multiply).
//   gemm_bench --benchmark_filter='w4g.*avx512_vnni/qwen05_down'
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/registry.h"
#include "thread_limits.h"

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
constexpr int64_t kRows[] = {1, 2, 4, 8, 16, 64, 512};
constexpr int64_t kColdBytes = int64_t{96} << 20;  // three times the last-level cache of the machine measured

bool IsInteger(GemmActivation activation) { return activation == GemmActivation::kInt16 || activation == GemmActivation::kInt8; }

GemmProblem ProblemOf(const GemmKernelEntry* row, const Shape& shape) {
  GemmProblem problem{.n = shape.n, .k = shape.k};
  if (row->weight == GemmWeight::kBf16) return problem;
  problem.group_size = shape.group_size;
  problem.bits = row->weight == GemmWeight::kW4Grouped ? 4 : 8;
  problem.scale = GemmScale::kF16;
  problem.activation = row->activation;
  if (IsInteger(row->activation)) problem.activation_group = shape.group_size;
  return problem;
}

// Ones in the form that integer rows read.
struct IntegerOnes {
  std::vector<int8_t> high, low;
  std::vector<float> scale;
  std::vector<int32_t> sum;

  IntegerOnes(const GemmProblem& problem, int64_t m)
      : high(static_cast<size_t>(m * problem.k), 0),
        low(static_cast<size_t>(m * problem.k), 1),
        scale(static_cast<size_t>(m * problem.k / problem.activation_group), 1.0f),
        sum(static_cast<size_t>(m * problem.k / problem.step()), static_cast<int32_t>(problem.step())) {
    if (problem.activation == GemmActivation::kInt8) high.swap(low);
  }
  IntegerActivation View(const GemmProblem& problem) const {
    const bool two_planes = problem.activation == GemmActivation::kInt16;
    return {.high = high.data(), .low = two_planes ? low.data() : nullptr, .stride = problem.k, .scale = scale.data(), .sum = sum.data()};
  }
};

void BenchGemm(benchmark::State& state, const GemmKernelEntry* row, const Shape& shape, int64_t m) {
  const GemmProblem problem = ProblemOf(row, shape);
  const auto bytes = static_cast<int64_t>(row->prepack_bytes(problem)) / 64 * 64;
  const int64_t copies = std::max<int64_t>(2, kColdBytes / bytes);
  AlignedBuffer weight(static_cast<size_t>(copies * bytes));
  for (int64_t i = 0; i < copies * bytes; ++i)
    weight.data()[i] = static_cast<uint8_t>(((i * 2654435761 >> 13) & 0x3B) | 0x04);  // no NaN, no subnormal
  const std::vector<uint16_t> activation(static_cast<size_t>(m * shape.k), 0x3F80);
  AlignedBuffer out(static_cast<size_t>(m * shape.n) * sizeof(float));  // huge pages, as a pass has them
  GemmParams params{.problem = problem,
                    .activation = activation.data(),
                    .activation_stride = shape.k,
                    .m = m,
                    .out = reinterpret_cast<float*>(out.data()),
                    .out_stride = shape.n,
                    .panel_end = (shape.n + kGemmPanel - 1) / kGemmPanel};
  std::optional<IntegerOnes> integers;
  const std::vector<float> scale(static_cast<size_t>(m), 1.0f);
  if (row->activation == GemmActivation::kFp8) params.activation_scale = scale.data();
  if (IsInteger(row->activation)) params.integer = integers.emplace(problem, m).View(problem);
  const double peak = PeakPerSecond(row->multiply, row->isa);
  const ProbeEntry* reader = FindProbe(ProbeLimit::kRead, DetectIsa());
  double best_kernel = 1e9, best_read = 1e9;
  volatile uint64_t sink = 0;
  int64_t copy = 0;
  for (auto _ : state) {
    const uint8_t* read = weight.data() + copy++ % copies * bytes;
    best_read = std::min(best_read, SecondsOf([&] { sink = reader->read(read, bytes / 256 * 256); }));
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
    if (!RunsHere(row->isa)) continue;
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
