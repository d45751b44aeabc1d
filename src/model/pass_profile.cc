#include "model/pass_profile.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace pith {
namespace {

constexpr int64_t kFloatBytes = 4, kBf16Bytes = 2;

// With the size of the pool: operators choose for themselves how many of its threads their work is worth.
void End(const ForwardPass& pass, const char* name, int64_t layer, int64_t rows, absl::FunctionRef<void(OperatorRecord&)> describe) {
  pass.profiler->EndOperator(name, layer, rows, pass.context.pool->num_threads(), describe);
}

// The row chosen for an operator: the one whose name begins with `op`.
std::string OperatorKernel(const ForwardPass& pass, absl::string_view op) {
  for (const std::string& name : pass.context.operators.names) {
    if (absl::StartsWith(name, op)) return name;
  }
  return "";
}

// Tokens whose keys the rows of a sequence see: all before them, or a window.
int64_t TokensSeen(const SequenceSlice& slice, int64_t window) {
  const int64_t end = slice.first_position + slice.num_rows;
  return window == 0 ? end : std::min(end, slice.num_rows + window - 1);
}

// (row, token) pairs of a sequence.
int64_t PairsSeen(const SequenceSlice& slice, int64_t window) {
  int64_t pairs = 0;
  for (int64_t r = 0; r < slice.num_rows; ++r) {
    const int64_t seen = slice.first_position + r + 1;
    pairs += window == 0 ? seen : std::min(seen, window);
  }
  return pairs;
}

// Bytes of one token's keys and values in one layer.
int64_t LayerKvBytesPerToken(const ForwardPass& pass) { return pass.kv.spec().bytes_per_token() / pass.kv.spec().num_layers; }

}  // namespace

void RecordLinear(const ForwardPass& pass, const char* name, int64_t layer, const Linear& linear, int64_t rows) {
  End(pass, name, layer, rows, [&](OperatorRecord& record) {
    std::string last;
    for (const TensorDataPath& path : linear.data_path()) {
      if (path.kernel == last) continue;
      absl::StrAppend(&record.kernel, record.kernel.empty() ? "" : "+", path.kernel);
      last = path.kernel;
    }
    record.work.weight_bytes = linear.resident_bytes();
    const int64_t input_bytes = absl::StartsWith(linear.data_path()[0].activation, "int8") ? 1 : kBf16Bytes;  // int16: two planes of int8
    record.work.activation_bytes = rows * (linear.in() * input_bytes + linear.out() * kFloatBytes);
    record.work.operations = 2 * rows * linear.in() * linear.out();
  });
}

void RecordEmbedding(const ForwardPass& pass, const Embedding& embedding) {
  const int64_t rows = pass.batch.num_rows();
  End(pass, "embedding", kNoLayer, rows, [&](OperatorRecord& record) {
    record.kernel = embedding.data_path().kernel;
    record.work.weight_bytes = rows * embedding.row_bytes();
    record.work.activation_bytes = rows * embedding.dim() * kFloatBytes;
  });
}

void RecordNorm(const ForwardPass& pass, int64_t layer, int64_t rows) {
  End(pass, "norm", layer, rows, [&](OperatorRecord& record) {
    record.kernel = OperatorKernel(pass, "rms_norm");
    record.work.weight_bytes = pass.config.hidden_size * kFloatBytes;
    record.work.activation_bytes = rows * pass.config.hidden_size * (kFloatBytes + kBf16Bytes);
  });
}

void RecordKeys(const ForwardPass& pass, int64_t layer) {
  const int64_t rows = pass.batch.num_rows();
  End(pass, "rope_kv", layer, rows, [&](OperatorRecord& record) {
    record.kernel = absl::StrCat(OperatorKernel(pass, "rotary"), "+", pass.attention.kv_append->name);
    const int64_t heads = pass.config.num_heads + pass.config.num_kv_heads;  // rotated in place: read and written
    record.work.activation_bytes = rows * (2 * heads + pass.config.num_kv_heads) * pass.config.head_dim * kFloatBytes;
    record.work.kv_bytes = rows * LayerKvBytesPerToken(pass);
  });
}

void RecordAttention(const ForwardPass& pass, int64_t layer, int64_t window) {
  const int64_t rows = pass.batch.num_rows();
  End(pass, "attention", layer, rows, [&](OperatorRecord& record) {
    record.kernel = pass.attention.attention->name;
    const int64_t queries = pass.config.num_heads * pass.config.head_dim;
    record.work.activation_bytes = rows * queries * (kFloatBytes + kBf16Bytes);
    for (const SequenceSlice& slice : pass.batch.sequences) {
      record.work.kv_bytes += TokensSeen(slice, window) * LayerKvBytesPerToken(pass);
      record.work.operations += 4 * PairsSeen(slice, window) * queries;  // q.k and p.v, a multiply-add each
    }
  });
}

}  // namespace pith
