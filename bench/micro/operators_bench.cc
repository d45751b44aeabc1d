// Every operator row on sizes of real models, one thread (attention of few rows also with two, the KV heads' tokens split between them).
// Counters: GFLOPS or GB/s, and the share of the limit measured in the same run (of_peak: what the row multiplies with; of_read: a plain
// read of as many bytes).
//   operators_bench --benchmark_filter=prefill --benchmark_repetitions=5
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/thread_pool.h"
#include "kernels/registry.h"
#include "thread_limits.h"

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

// A cache of every sequence of a case in one of the formats, with codes and scales of ordinary size.
class BenchCache {
 public:
  BenchCache(KvDtype dtype, const AttentionCase& c)
      : blocks_((c.first_position + c.num_rows + kBlockSize - 1) / kBlockSize),
        head_stride_(kBlockSize * (c.head_dim * KvElementBytes(dtype) + KvScaleBytes(dtype))),
        block_stride_(c.num_kv_heads * head_stride_),
        bytes_(c.num_sequences * blocks_ * block_stride_),
        buffer_(static_cast<size_t>(2 * bytes_)) {  // huge pages where the system grants them, as the engine's cache
    for (int64_t b = 0; b < blocks_; ++b) table_.push_back(static_cast<int32_t>((b * 7 + 3) % blocks_));
    auto* begin = reinterpret_cast<uint8_t*>(buffer_.data());
    const int64_t elements = kBlockSize * c.head_dim, element_bytes = KvElementBytes(dtype);
    for (int64_t head = 0; head < 2 * bytes_; head += head_stride_) {
      for (int64_t i = 0; i < elements; ++i) {
        const uint64_t noise = static_cast<uint64_t>(head + i) * 2654435761 >> 7;
        const auto bits = static_cast<uint16_t>(dtype == KvDtype::kBf16 ? 0x3C00 + noise % 512 + (noise & 0x8000) : noise % 120);
        std::memcpy(begin + head + i * element_bytes, &bits, static_cast<size_t>(element_bytes));
      }
      const float scale = 0.01f;
      for (int64_t t = 0; t < kBlockSize && dtype != KvDtype::kBf16; ++t) std::memcpy(begin + head + elements + 4 * t, &scale, 4);
    }
  }
  void Use(int64_t sequence, AttentionParams& p) const {
    p.key_cache = reinterpret_cast<const uint8_t*>(buffer_.data()) + sequence * blocks_ * block_stride_;
    p.value_cache = p.key_cache + bytes_;
    p.block_table = table_.data();
    p.block_size = kBlockSize;
    p.block_stride = block_stride_;
    p.head_stride = head_stride_;
  }
  const uint8_t* data() const { return buffer_.data(); }
  int64_t total_bytes() const { return 2 * bytes_; }
  int64_t bytes_per_sequence() const { return 2 * blocks_ * block_stride_; }

 private:
  int64_t blocks_, head_stride_, block_stride_, bytes_;
  AlignedBuffer buffer_;
  std::vector<int32_t> table_;
};

// One call, or, with a pool of several threads, one task per KV head and partition and a combining call, as the model does in decode.
class AttentionCall {
 public:
  AttentionCall(const OperatorEntry* row, const AttentionCase& c, int threads) : row_(row), pool_(threads) {
    const int64_t floats = AttentionScratchFloats(c.num_heads, c.num_kv_heads, c.head_dim);
    partitions_ = AttentionPartitionEnd(c.first_position + c.num_rows - 1);
    head_floats_ = partitions_ * c.num_rows * (c.num_heads / c.num_kv_heads) * AttentionStateFloats(c.head_dim);
    for (int t = 0; t < threads; ++t) scratch_.emplace_back(static_cast<size_t>(floats) * sizeof(float));
    if (threads > 1) partial_ = AlignedBuffer(static_cast<size_t>(head_floats_ * c.num_kv_heads) * sizeof(float));
  }

  void Run(AttentionParams p) {
    if (scratch_.size() == 1) {
      p.scratch = Floats(scratch_[0]);
      return row_->attention(p);
    }
    pool_.ParallelForDynamic(p.num_kv_heads * partitions_, 1, [&](int64_t begin, int64_t, int thread) {
      row_->attention(Part(p, begin / partitions_, begin % partitions_, thread));
    });
    for (int64_t head = 0; head < p.num_kv_heads; ++head) row_->attention_combine(Part(p, head, 0, 0));
  }

 private:
  static float* Floats(AlignedBuffer& buffer) { return reinterpret_cast<float*>(buffer.data()); }
  AttentionParams Part(AttentionParams p, int64_t head, int64_t partition, int thread) {
    p.kv_head_begin = head;
    p.kv_head_end = head + 1;
    p.partition_begin = partition;
    p.partition_end = partition + 1;
    p.partial = Floats(partial_) + head * head_floats_;
    p.scratch = Floats(scratch_[static_cast<size_t>(thread)]);
    return p;
  }

  const OperatorEntry* row_;
  ThreadPool pool_;
  int64_t partitions_ = 0, head_floats_ = 0;
  std::vector<AlignedBuffer> scratch_;
  AlignedBuffer partial_;
};

void BenchAttention(benchmark::State& state, const OperatorEntry* row, const AttentionCase& c, int threads) {
  const BenchCache cache(row->kv_dtype, c);
  AttentionCall call(row, c, threads);
  std::vector<uint16_t> out(static_cast<size_t>(c.num_rows * c.num_heads * c.head_dim));
  const std::vector<float> query(out.size(), 0.5f);
  AttentionParams p{.query = query.data(),
                    .query_stride = c.num_heads * c.head_dim,
                    .out = out.data(),
                    .out_stride = c.num_heads * c.head_dim,
                    .num_rows = c.num_rows,
                    .first_position = c.first_position,
                    .num_heads = c.num_heads,
                    .num_kv_heads = c.num_kv_heads,
                    .head_dim = c.head_dim,
                    .scale = 0.125f,
                    .kv_head_end = c.num_kv_heads,
                    .row_end = c.num_rows};
  const double flops_limit = PeakPerSecond(row->multiply, row->isa);
  const double read_limit = ReadBytesPerSecond(cache.data(), cache.total_bytes() / 256 * 256);
  int64_t sequence = 0;
  for (auto _ : state) {
    cache.Use(sequence, p);
    sequence = (sequence + 1) % c.num_sequences;
    call.Run(p);
    benchmark::ClobberMemory();
  }
  double pairs = 0.0;  // (row, token) pairs
  for (int64_t r = 0; r < c.num_rows; ++r) pairs += static_cast<double>(c.first_position + r + 1);
  const double flops = 4.0 * pairs * static_cast<double>(c.num_heads * c.head_dim) * static_cast<double>(state.iterations());
  const double bytes = static_cast<double>(cache.bytes_per_sequence()) * static_cast<double>(state.iterations());
  state.counters["GFLOPS"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsRate);
  state.counters["KV_GB/s"] = benchmark::Counter(bytes * 1e-9, benchmark::Counter::kIsRate);
  if (threads > 1) return;  // the limits are those of one thread
  state.counters["of_peak"] = benchmark::Counter(flops / flops_limit, benchmark::Counter::kIsRate);
  state.counters["of_read"] = benchmark::Counter(bytes / read_limit, benchmark::Counter::kIsRate);
}

// Runs `call` over and over; `bytes` is what one call reads and writes.
template <typename F> void BenchBytes(benchmark::State& state, int64_t bytes, const F& call) {
  AlignedBuffer buffer(static_cast<size_t>(bytes + 256));
  std::memset(buffer.data(), 1, buffer.size());  // otherwise one zero page would be read all the time
  const double read_limit = ReadBytesPerSecond(buffer.data(), bytes / 256 * 256);
  for (auto _ : state) {
    call();
    benchmark::ClobberMemory();
  }
  const double total = static_cast<double>(bytes) * static_cast<double>(state.iterations());
  state.counters["GB/s"] = benchmark::Counter(total * 1e-9, benchmark::Counter::kIsRate);
  state.counters["of_read"] = benchmark::Counter(total / read_limit, benchmark::Counter::kIsRate);
}

// Values between -8 and 8.
std::vector<float> Ramp(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 64) * 0.25f - 8.0f;
  return values;
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
  const std::vector<float> gate = Ramp(rows * dim), up(gate.size(), 0.7f);
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
  const int64_t blocks = (rows + kBlockSize - 1) / kBlockSize;
  const int64_t vector_bytes = head_dim * KvElementBytes(row->kv_dtype) + KvScaleBytes(row->kv_dtype);
  const int64_t head_stride = kBlockSize * vector_bytes, block_stride = kv_heads * head_stride;
  std::vector<float> key(static_cast<size_t>(rows * kv_heads * head_dim), 1.5f), value(key);
  std::vector<uint8_t> key_cache(static_cast<size_t>(blocks * block_stride)), value_cache(key_cache.size());
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
                         .head_stride = head_stride};
  BenchBytes(state, rows * kv_heads * 2 * (head_dim * 4 + vector_bytes), [&] { row->kv_append(p); });
}

// Groups of 32, as GGUF and small artifacts want them.
void BenchQuantizeActivation(benchmark::State& state, const OperatorEntry* row, bool two_planes, int64_t rows, int64_t dim) {
  constexpr int64_t kGroup = 32;
  const std::vector<float> x = Ramp(rows * dim);
  std::vector<int8_t> high(x.size()), low(x.size());
  std::vector<float> scale(x.size() / kGroup);
  std::vector<int32_t> sum(scale.size());
  const QuantizeActivationParams p{.x = x.data(),
                                   .x_stride = dim,
                                   .num_rows = rows,
                                   .dim = dim,
                                   .group_size = kGroup,
                                   .sum_group = kGroup,
                                   .high = high.data(),
                                   .low = two_planes ? low.data() : nullptr,
                                   .out_stride = dim,
                                   .scale = scale.data(),
                                   .scale_stride = dim / kGroup,
                                   .sum = sum.data(),
                                   .sum_stride = dim / kGroup};
  BenchBytes(state, rows * dim * (two_planes ? 6 : 5), [&] { row->quantize_activation(p); });
}

void BenchQuantizeActivationFp8(benchmark::State& state, const OperatorEntry* row, int64_t rows, int64_t dim) {
  const std::vector<float> x = Ramp(rows * dim);
  std::vector<float> scale(static_cast<size_t>(rows));
  std::vector<uint16_t> out(x.size());
  const QuantizeActivationFp8Params p{
      .x = x.data(), .x_stride = dim, .num_rows = rows, .dim = dim, .out = out.data(), .out_stride = dim, .scale = scale.data()};
  BenchBytes(state, rows * dim * 6, [&] { row->quantize_activation_fp8(p); });
}

template <typename F> void Register(const std::string& name, const F& body) {
  benchmark::RegisterBenchmark(name.c_str(), body)->Unit(benchmark::kMicrosecond);
}

void RegisterAll() {
  for (const OperatorEntry* row : AllOperators()) {
    if (!RunsHere(row->isa)) continue;
    const std::string name = row->name;
    if (row->attention != nullptr) {
      for (const AttentionCase& c : kAttentionCases) {
        Register(name + "/" + c.name, [row, c](auto& s) { BenchAttention(s, row, c, 1); });
        if (c.num_rows > kAttentionTileRows) continue;
        benchmark::RegisterBenchmark((name + "/" + c.name + "/threads2").c_str(), [row, c](auto& s) { BenchAttention(s, row, c, 2); })
            ->Unit(benchmark::kMicrosecond)
            ->UseRealTime();
      }
    }
    for (int64_t rows : {1, 64}) {
      const std::string sized = name + "/rows" + std::to_string(rows);
      if (row->rms_norm != nullptr) Register(sized + "/dim1536", [=](auto& s) { BenchRmsNorm(s, row, rows, 1536); });
      if (row->rotary != nullptr) Register(sized + "/h14_d64", [=](auto& s) { BenchRotary(s, row, rows, 14, 64); });
      if (row->embedding != nullptr) Register(sized + "/dim1536", [=](auto& s) { BenchEmbedding(s, row, rows, 1536); });
      if (row->kv_append != nullptr) Register(sized + "/kv2_d64", [=](auto& s) { BenchKvAppend(s, row, rows, 2, 64); });
      if (row->convert != nullptr) Register(sized + "/dim1536", [=](auto& s) { BenchConvert(s, row, rows * 1536); });
      if (row->quantize_activation != nullptr) {
        Register(sized + "/int8_dim4864", [=](auto& s) { BenchQuantizeActivation(s, row, false, rows, 4864); });
        Register(sized + "/int16_dim4864", [=](auto& s) { BenchQuantizeActivation(s, row, true, rows, 4864); });
      }
      if (row->quantize_activation_fp8 != nullptr) {
        Register(sized + "/dim4864", [=](auto& s) { BenchQuantizeActivationFp8(s, row, rows, 4864); });
      }
      if (row->gated_activation == nullptr) continue;
      Register(sized + "/silu_dim4864", [=](auto& s) { BenchActivation(s, row, Activation::kSilu, rows, 4864); });
      Register(sized + "/gelu_dim4864", [=](auto& s) { BenchActivation(s, row, Activation::kGeluTanh, rows, 4864); });
    }
  }
}

const bool kRegistered = (RegisterAll(), true);

}  // namespace
}  // namespace pith
