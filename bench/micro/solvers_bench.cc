// Solvers of the quantization methods on the matrices of Qwen2.5 0.5B, group 128, two threads, wall time. Rows are correlated, so nothing
// is a special case.
//   solvers_bench --benchmark_filter=Gptq
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "base/cpu_features.h"
#include "base/float_types.h"
#include "base/random.h"
#include "compression/modifiers/awq_search.h"
#include "compression/modifiers/gptq_solver.h"
#include "compression/modifiers/hessian.h"
#include "compression/modifiers/smoothquant_solver.h"
#include "quantization/quantize_weight.h"

namespace pith {
namespace {

constexpr int kThreads = 2;
constexpr int64_t kSampleRows = 2048;
constexpr int64_t kCalibrationRows = 65536;  // 128 texts of 512 tokens

constexpr QuantizationArgs kW4 = {.num_bits = 4, .strategy = QuantizationStrategy::kGroup, .group_size = 128};

std::vector<float> RandomRows(int64_t rows, int64_t cols, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(rows * cols));
  RandomStream random(seed);
  for (int64_t r = 0; r < rows; ++r) {
    const float shared = random.Normal();
    for (int64_t c = 0; c < cols; ++c) {
      values[r * cols + c] = (static_cast<float>(random.Uniform()) - 0.5f + 0.3f * shared) * (c % 50 == 7 ? 10.0f : 1.0f);
    }
  }
  return values;
}

// A layer [out, in] and the Hessian of its input.
struct Layer {
  Layer(int64_t out, int64_t in) : out(out), in(in), pool(kThreads), values(RandomRows(out, in, 1)), rows(RandomRows(kSampleRows, in, 2)) {
    HessianAccumulator accumulator(in, DetectIsa());
    accumulator.Add({rows.data(), kSampleRows, in}, pool);
    hessian = *accumulator.Hessian(pool);
  }
  MatrixView<const float> weight() const { return {values.data(), out, in}; }
  MatrixView<const float> moments() const { return {hessian.as<float>().data(), in, in}; }

  int64_t out, in;
  ThreadPool pool;
  std::vector<float> values, rows;
  Tensor hessian;
};

// All calibration rows of one input: by BLAS, on the best unit of this CPU, there with rows that are bf16 numbers.
void Hessian(benchmark::State& state) {
  const int64_t in = state.range(0);
  ThreadPool pool(kThreads);
  std::vector<float> rows = RandomRows(kSampleRows, in, 3);
  for (float& value : rows) value = state.range(1) == 2 ? RoundToBfloat16(value) : value;
  for (auto _ : state) {
    HessianAccumulator accumulator(in, state.range(1) == 0 ? Isa::kScalar : DetectIsa());
    for (int64_t r = 0; r < kCalibrationRows; r += kSampleRows) accumulator.Add({rows.data(), kSampleRows, in}, pool);
    benchmark::DoNotOptimize(accumulator.Hessian(pool));
  }
  const double flops = static_cast<double>(kCalibrationRows) * static_cast<double>(in) * static_cast<double>(in);
  state.counters["GFLOPS"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void Rtn(benchmark::State& state) {
  Layer layer(state.range(0), state.range(1));
  std::vector<float> importance;
  for (int64_t i = 0; i < layer.in && state.range(2) == 1; ++i) importance.push_back(layer.moments().row(i)[i]);
  for (auto _ : state) {
    CHECK(QuantizeWeight(layer.weight(), kW4, DType::kBF16, ClipSearch(), layer.pool, importance).ok());
  }
}

void GptqFactorize(benchmark::State& state) {
  Layer layer(1, state.range(0));
  for (auto _ : state) CHECK(FactorizeHessian(layer.moments(), {}, layer.pool).ok());
}

// Factors, scales, codes and losses.
void GptqSolve(benchmark::State& state) {
  Layer layer(state.range(0), state.range(1));
  for (auto _ : state) {
    const auto result = SolveGptq(layer.weight(), layer.moments(), kW4, DType::kBF16, {.refit_scales = state.range(2) == 1}, layer.pool);
    CHECK(result.ok());
    state.counters["loss/rtn"] = result->loss / result->rtn_loss;
  }
}

void AwqSearch(benchmark::State& state) {
  Layer layer(state.range(0), state.range(1));
  std::vector<float> mean_abs_input;
  for (int64_t i = 0; i < layer.in; ++i) mean_abs_input.push_back(i % 50 == 7 ? 3.0f : 0.3f);
  const std::vector<MatrixView<const float>> weights = {layer.weight()};
  const AwqOptions options{.clip_search = ClipSearch(), .isa = DetectIsa()};
  for (auto _ : state) {
    const auto result = SearchAwqScales(mean_abs_input, weights, layer.moments(), kW4, options, layer.pool);
    CHECK(result.ok());
    state.counters["error/plain"] = result->best.error / result->curve[0].error;
  }
}

void SmoothQuantSearch(benchmark::State& state) {
  Layer layer(state.range(0), state.range(1));
  const std::vector<float> max_abs_input(static_cast<size_t>(layer.in), 2.0f);
  const std::vector<MatrixView<const float>> weights = {layer.weight()};
  for (auto _ : state) CHECK(SolveSmoothQuant(max_abs_input, weights, {layer.rows.data(), 512, layer.in}, {}, layer.pool).ok());
}

BENCHMARK(Hessian)->ArgsProduct({{896, 4864}, {0, 1, 2}})->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(1);
BENCHMARK(Rtn)->Args({4864, 896, 0})->Args({4864, 896, 1})->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(GptqFactorize)->Arg(896)->Arg(4864)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(GptqSolve)
    ->ArgsProduct({{4864}, {896}, {0, 1}})
    ->ArgsProduct({{896}, {4864}, {0, 1}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK(AwqSearch)->Args({4864, 896})->Args({896, 4864})->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(1);
BENCHMARK(SmoothQuantSearch)->Args({4864, 896})->Unit(benchmark::kMillisecond)->UseRealTime()->Iterations(1);

}  // namespace
}  // namespace pith
