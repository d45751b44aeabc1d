// Codes to the bytes of each stored format, on one thread: weights per second on a matrix of Qwen2.5 0.5B's MLP.
//   packing_bench --benchmark_filter=pack_quantized
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/random.h"
#include "benchmark/benchmark.h"
#include "quantization/formats/format_table.h"

namespace pith {
namespace {

constexpr int64_t kOut = 4864, kIn = 896;

QuantizedTensor RandomCodes(const QuantizationArgs& args) {
  QuantizedTensor weight;
  weight.out = kOut;
  weight.in = kIn;
  weight.bits = args.num_bits;
  weight.group_size = args.columns_per_scale(kIn);
  weight.scale_dtype = DType::kBF16;
  weight.code.resize(static_cast<size_t>(kOut * kIn));
  RandomStream random(1);
  for (uint8_t& code : weight.code) code = static_cast<uint8_t>(random.Below(1u << args.num_bits));
  weight.scale.assign(static_cast<size_t>(kOut * weight.num_groups()), 0.0078125f);
  if (!args.symmetric) weight.zero_point.assign(weight.scale.size(), 3);
  return weight;
}

void BM_Pack(benchmark::State& state, const std::string& format, const QuantizationArgs& args) {
  const QuantizedTensor weight = RandomCodes(args);
  for (auto _ : state) {
    const auto stored = EncodeWeight(format, weight, args);
    CHECK(stored.ok());
    benchmark::DoNotOptimize(stored->front().tensor.data());
  }
  state.SetItemsProcessed(state.iterations() * kOut * kIn);
}

QuantizationArgs Grouped(int bits, bool symmetric = true) {
  return {.num_bits = bits, .symmetric = symmetric, .strategy = QuantizationStrategy::kGroup, .group_size = 128};
}

BENCHMARK_CAPTURE(BM_Pack, pack_quantized_int4, "pack-quantized", Grouped(4))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Pack, pack_quantized_int4_asymmetric, "pack-quantized", Grouped(4, false))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Pack, pack_quantized_int8, "pack-quantized", Grouped(8))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Pack, pack_quantized_int3, "pack-quantized", Grouped(3))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Pack, int_quantized_int8, "int-quantized", Grouped(8))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Pack, gptq_int4, "gptq", Grouped(4))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Pack, awq_int4, "awq", Grouped(4, false))->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace pith
