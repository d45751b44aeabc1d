// Every operator row on sizes of real models, one thread. Counters: GFLOPS or GB/s, and the share of the limit measured in the same run
// (f32 FMA of the row's instruction set; a plain read of as many bytes).
//   operators_bench --benchmark_filter=prefill --benchmark_repetitions=5
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/registry.h"
#include "machine_limits.h"

namespace pith {
namespace {

struct AttentionCase {
  const char* name;
  int64_t num_heads, num_kv_heads, head_dim;
  int64_t first_position, num_rows;
  int64_t num_sequences;  // read in turn, so that decode does not find its keys in a cache
};

constexpr AttentionCase kAttentionCases[] = {
    {"prefill_512/h9_kv3_d64", 9, 3, 64, 0, 512, 1},
    {"prefill_512_of_8192/h9_kv3_d64", 9, 3, 64, 7680, 512, 1},
    {"prefill_512_of_8192/h14_kv2_d64", 14, 2, 64, 7680, 512, 1},
    {"prefill_512_of_8192/h12_kv2_d128", 12, 2, 128, 7680, 512, 1},
    {"prefill_512_of_8192/h4_kv1_d256", 4, 1, 256, 7680, 512, 1},
    {"verify_4_of_8192/h14_kv2_d64", 14, 2, 64, 8188, 4, 32},
    {"decode_8192/h8_kv8_d64", 8, 8, 64, 8191, 1, 8},
    {"decode_8192/h9_kv3_d64", 9, 3, 64, 8191, 1, 24},
    {"decode_8192/h14_kv2_d64", 14, 2, 64, 8191, 1, 32},
    {"decode_8192/h12_kv2_d128", 12, 2, 128, 8191, 1, 16},
    {"decode_8192/h4_kv1_d256", 4, 1, 256, 8191, 1, 16},
    {"decode_512/h14_kv2_d64", 14, 2, 64, 511, 1, 1},
    {"decode_512/h8_kv8_d64", 8, 8, 64, 511, 1, 1},
    {"decode_512/h9_kv3_d64", 9, 3, 64, 511, 1, 1},
};
constexpr int64_t kBlockSize = 32;

void BenchAttention(benchmark::State& state, const OperatorEntry* row, const AttentionCase& c) {
  const int64_t tokens = c.first_position + c.num_rows;
  const int64_t blocks = (tokens + kBlockSize - 1) / kBlockSize;
  const int64_t head_stride = kBlockSize * c.head_dim, block_stride = c.num_kv_heads * head_stride;
  const int64_t cache_size = c.num_sequences * blocks * block_stride;
  AlignedBuffer cache(static_cast<size_t>(cache_size) * 4);  // huge pages where the system grants them, as the engine's cache
  auto* key = reinterpret_cast<uint16_t*>(cache.data());
  uint16_t* value = key + cache_size;
  for (int64_t i = 0; i < cache_size; ++i) {
    key[i] = static_cast<uint16_t>(0x3C00 + i * 2654435761 % 512 + (i * 40503 & 0x8000));
    value[i] = static_cast<uint16_t>(key[i] ^ 0x8000);
  }
  std::vector<uint16_t> out(static_cast<size_t>(c.num_rows * c.num_heads * c.head_dim));
  std::vector<float> query(out.size(), 0.5f), scratch(static_cast<size_t>(AttentionScratchFloats(c.num_heads, c.num_kv_heads, c.head_dim)));
  std::vector<int32_t> table(static_cast<size_t>(blocks));
  for (int64_t b = 0; b < blocks; ++b) table[b] = static_cast<int32_t>((b * 7 + 3) % blocks);
  AttentionParams p{.query = query.data(),
                    .query_stride = c.num_heads * c.head_dim,
                    .out = out.data(),
                    .out_stride = c.num_heads * c.head_dim,
                    .num_rows = c.num_rows,
                    .first_position = c.first_position,
                    .num_heads = c.num_heads,
                    .num_kv_heads = c.num_kv_heads,
                    .head_dim = c.head_dim,
                    .block_table = table.data(),
                    .block_size = kBlockSize,
                    .block_stride = block_stride,
                    .head_stride = head_stride,
                    .scale = 0.125f,
                    .kv_head_end = c.num_kv_heads,
                    .row_end = c.num_rows,
                    .scratch = scratch.data()};
  const double flops_limit = FmaFlopsPerSecond(static_cast<Isa>(row->isa));
  const double read_limit = ReadBytesPerSecond(key, cache_size * 4 / 256 * 256);
  int64_t sequence = 0;
  for (auto _ : state) {
    p.key_cache = key + sequence * blocks * block_stride;
    p.value_cache = value + sequence * blocks * block_stride;
    sequence = (sequence + 1) % c.num_sequences;
    row->attention(p);
    benchmark::ClobberMemory();
  }
  double pairs = 0.0;  // (row, token) pairs
  for (int64_t r = 0; r < c.num_rows; ++r) pairs += static_cast<double>(c.first_position + r + 1);
  const double flops = 4.0 * pairs * static_cast<double>(c.num_heads * c.head_dim) * static_cast<double>(state.iterations());
  const double bytes = 4.0 * static_cast<double>(tokens * c.num_kv_heads * c.head_dim) * static_cast<double>(state.iterations());
  state.counters["GFLOPS"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsRate);
  state.counters["of_fma"] = benchmark::Counter(flops / flops_limit, benchmark::Counter::kIsRate);
  state.counters["KV_GB/s"] = benchmark::Counter(bytes * 1e-9, benchmark::Counter::kIsRate);
  state.counters["of_read"] = benchmark::Counter(bytes / read_limit, benchmark::Counter::kIsRate);
}

// Runs `call` over and over; `bytes` is what one call reads and writes.
template <typename F> void BenchBytes(benchmark::State& state, int64_t bytes, const F& call) {
  std::vector<uint8_t> buffer(static_cast<size_t>(bytes + 256), 1);
  const double read_limit = ReadBytesPerSecond(buffer.data(), bytes / 256 * 256);
  for (auto _ : state) {
    call();
    benchmark::ClobberMemory();
  }
  const double total = static_cast<double>(bytes) * static_cast<double>(state.iterations());
  state.counters["GB/s"] = benchmark::Counter(total * 1e-9, benchmark::Counter::kIsRate);
  state.counters["of_read"] = benchmark::Counter(total / read_limit, benchmark::Counter::kIsRate);
}

void BenchRmsNorm(benchmark::State& state, const OperatorEntry* row, int64_t rows, int64_t dim) {
  std::vector<float> x(static_cast<size_t>(rows * dim), 1.5f), weight(static_cast<size_t>(dim), 1.0f);
  std::vector<uint16_t> out(x.size());
  const RmsNormParams p{
      .x = x.data(), .x_stride = dim, .weight = weight.data(), .num_rows = rows, .dim = dim, .out_bf16 = out.data(), .out_stride = dim};
  BenchBytes(state, rows * dim * 6, [&] { row->rms_norm(p); });
}

void BenchRotary(benchmark::State& state, const OperatorEntry* row, int64_t rows, int64_t heads, int64_t head_dim) {
  std::vector<float> x(static_cast<size_t>(rows * heads * head_dim), 1.5f), cos(static_cast<size_t>(rows * head_dim / 2), 0.6f),
      sin(cos.size(), 0.8f);
  std::vector<int32_t> position(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r) position[r] = static_cast<int32_t>(r);
  const RotaryParams p{.x = x.data(),
                       .x_stride = heads * head_dim,
                       .num_rows = rows,
                       .num_heads = heads,
                       .head_dim = head_dim,
                       .rotary_dim = head_dim,
                       .position = position.data(),
                       .cos = cos.data(),
                       .sin = sin.data()};
  BenchBytes(state, rows * heads * head_dim * 8, [&] { row->rotary(p); });
}

void BenchActivation(benchmark::State& state, const OperatorEntry* row, Activation activation, int64_t rows, int64_t dim) {
  std::vector<float> gate(static_cast<size_t>(rows * dim)), up(gate.size(), 0.7f);
  for (size_t i = 0; i < gate.size(); ++i) gate[i] = static_cast<float>(i % 64) * 0.25f - 8.0f;
  std::vector<uint16_t> out(gate.size());
  const GatedActivationParams p{.gate = gate.data(),
                                .up = up.data(),
                                .gate_stride = dim,
                                .up_stride = dim,
                                .out = out.data(),
                                .out_stride = dim,
                                .num_rows = rows,
                                .dim = dim,
                                .activation = activation};
  BenchBytes(state, rows * dim * 10, [&] { row->gated_activation(p); });
}

void BenchConvert(benchmark::State& state, const OperatorEntry* row, int64_t count) {
  std::vector<float> in(static_cast<size_t>(count), 1.5f);
  std::vector<uint16_t> out(in.size());
  const ConvertParams p{.in = in.data(), .out = out.data(), .count = count};
  BenchBytes(state, count * 6, [&] { row->convert(p); });
}

void BenchEmbedding(benchmark::State& state, const OperatorEntry* row, int64_t rows, int64_t dim) {
  std::vector<uint16_t> table(static_cast<size_t>(rows * dim), 0x3F80);
  std::vector<float> out(table.size());
  std::vector<int32_t> token(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r) token[r] = static_cast<int32_t>(r * 7 % rows);
  const EmbeddingParams p{.table = table.data(), .token = token.data(), .out = out.data(), .out_stride = dim, .num_rows = rows, .dim = dim};
  BenchBytes(state, rows * dim * 6, [&] { row->embedding(p); });
}

void BenchKvAppend(benchmark::State& state, const OperatorEntry* row, int64_t rows, int64_t kv_heads, int64_t head_dim) {
  const int64_t blocks = (rows + kBlockSize - 1) / kBlockSize, block_stride = kBlockSize * kv_heads * head_dim;
  std::vector<float> key(static_cast<size_t>(rows * kv_heads * head_dim), 1.5f), value(key);
  std::vector<uint16_t> key_cache(static_cast<size_t>(blocks * block_stride)), value_cache(key_cache.size());
  std::vector<int32_t> table(static_cast<size_t>(blocks));
  for (int64_t b = 0; b < blocks; ++b) table[b] = static_cast<int32_t>(b);
  const KvAppendParams p{.key = key.data(),
                         .value = value.data(),
                         .key_stride = kv_heads * head_dim,
                         .value_stride = kv_heads * head_dim,
                         .num_rows = rows,
                         .num_kv_heads = kv_heads,
                         .head_dim = head_dim,
                         .key_cache = key_cache.data(),
                         .value_cache = value_cache.data(),
                         .block_table = table.data(),
                         .block_size = kBlockSize,
                         .block_stride = block_stride,
                         .head_stride = kBlockSize * head_dim};
  BenchBytes(state, rows * kv_heads * head_dim * 12, [&] { row->kv_append(p); });
}

template <typename F> void Register(const std::string& name, const F& body) {
  benchmark::RegisterBenchmark(name.c_str(), body)->Unit(benchmark::kMicrosecond);
}

void RegisterAll() {
  for (const OperatorEntry* row : AllOperators()) {
    if (static_cast<int>(row->isa) > static_cast<int>(DetectIsa())) continue;
    const std::string name = row->name;
    if (row->attention != nullptr) {
      for (const AttentionCase& c : kAttentionCases) Register(name + "/" + c.name, [row, c](auto& s) { BenchAttention(s, row, c); });
    }
    for (int64_t rows : {1, 64}) {
      const std::string sized = name + "/rows" + std::to_string(rows);
      if (row->rms_norm != nullptr) Register(sized + "/dim1536", [=](auto& s) { BenchRmsNorm(s, row, rows, 1536); });
      if (row->rotary != nullptr) Register(sized + "/h14_d64", [=](auto& s) { BenchRotary(s, row, rows, 14, 64); });
      if (row->embedding != nullptr) Register(sized + "/dim1536", [=](auto& s) { BenchEmbedding(s, row, rows, 1536); });
      if (row->kv_append != nullptr) Register(sized + "/kv2_d64", [=](auto& s) { BenchKvAppend(s, row, rows, 2, 64); });
      if (row->convert != nullptr) Register(sized + "/dim1536", [=](auto& s) { BenchConvert(s, row, rows * 1536); });
      if (row->gated_activation == nullptr) continue;
      Register(sized + "/silu_dim4864", [=](auto& s) { BenchActivation(s, row, Activation::kSilu, rows, 4864); });
      Register(sized + "/gelu_dim4864", [=](auto& s) { BenchActivation(s, row, Activation::kGeluTanh, rows, 4864); });
    }
  }
}

const bool kRegistered = (RegisterAll(), true);

}  // namespace
}  // namespace pith
