// Time to draw one token from a row of logits, by vocabulary size: SmolLM2, Qwen2.5, Gemma 3.
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "benchmark/benchmark.h"
#include "sampling/cdf_inversion.h"
#include "sampling/sampler.h"

namespace pith {
namespace {

// Shaped like the row of a language model: a bell with a few tokens far above it.
std::vector<float> MakeLogits(int64_t vocab_size) {
  RandomStream random(1);
  std::vector<float> logits(static_cast<size_t>(vocab_size));
  for (float& logit : logits) logit = 3.0f * random.Normal();
  for (int i = 0; i < 8; ++i) logits[random.Below(vocab_size)] = 18.0f - static_cast<float>(i);
  return logits;
}

void BM_Sample(benchmark::State& state, const SamplingParams& params) {
  const std::vector<float> logits = MakeLogits(state.range(0));
  SamplerScratch scratch;
  int64_t position = 0;
  for (auto _ : state) benchmark::DoNotOptimize(Sample(logits, params, {.position = position++}, scratch)->token);
}

// As calibration data is drawn.
void BM_DrawByInversion(benchmark::State& state) {
  const std::vector<float> logits = MakeLogits(state.range(0));
  uint64_t position = 0;
  for (auto _ : state) benchmark::DoNotOptimize(DrawByInversion(logits, UniformOpen(1, 0, position++)));
}

void VocabularySizes(benchmark::internal::Benchmark* bench) { bench->Arg(49152)->Arg(151936)->Arg(262144)->Unit(benchmark::kMicrosecond); }

BENCHMARK_CAPTURE(BM_Sample, greedy, {.temperature = 0.0f})->Apply(VocabularySizes);
BENCHMARK_CAPTURE(BM_Sample, greedy_logprobs, {.temperature = 0.0f, .logprobs = 5})->Apply(VocabularySizes);
BENCHMARK_CAPTURE(BM_Sample, unfiltered, {})->Apply(VocabularySizes);
BENCHMARK_CAPTURE(BM_Sample, top_k_50, {.top_k = 50})->Apply(VocabularySizes);
BENCHMARK_CAPTURE(BM_Sample, top_p_90, {.top_p = 0.9f})->Apply(VocabularySizes);
BENCHMARK_CAPTURE(BM_Sample, min_p_05, {.min_p = 0.05f})->Apply(VocabularySizes);
BENCHMARK_CAPTURE(BM_Sample, flat_top_p_95, {.temperature = 2.0f, .top_p = 0.95f})->Apply(VocabularySizes);
BENCHMARK(BM_DrawByInversion)->Apply(VocabularySizes);

}  // namespace
}  // namespace pith
