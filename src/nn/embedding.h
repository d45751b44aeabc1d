// Token embedding: a table of bf16 rows, of quantized rows that are dequantized as they are looked up, or the matrix of a tied head.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/compute_context.h"
#include "nn/data_path.h"
#include "nn/linear.h"
#include "quantization/quantized_tensor.h"
#include "tensor/tensor.h"

namespace pith {

class Embedding {
 public:
  // A copy of a dense [vocab, dim] table, rounded to bf16. Errors: kDataLoss for NaN or infinities.
  static absl::StatusOr<Embedding> LoadDense(const LinearSource& source, const ComputeContext& context);
  // Keeps the codes. Errors: kDataLoss for NaN or infinite scales.
  static absl::StatusOr<Embedding> LoadQuantized(const std::string& name, QuantizedTensor table, int64_t stored_bytes);

  // Looks rows up in `head`, whose weights are the table: nothing is kept twice. `source` describes the stored table.
  static Embedding Tied(const LinearSource& source, std::shared_ptr<const Linear> head);

  int64_t vocab_size() const { return data_path_.out; }
  int64_t dim() const { return data_path_.in; }

  // out[r] = scale * table[tokens[r]], rows out_stride floats apart. Tokens lie in [0, vocab_size).
  void Run(const ComputeContext& context, absl::Span<const int32_t> tokens, float scale, float* out, int64_t out_stride) const;

  const TensorDataPath& data_path() const { return data_path_; }
  int64_t resident_bytes() const { return data_path_.resident_bytes; }  // tied: 0, they are the head's
  // What a look-up of one token reads.
  int64_t row_bytes() const { return (head_ != nullptr ? head_->resident_bytes() : resident_bytes()) / vocab_size(); }

 private:
  AlignedBuffer dense_;  // bf16 bits [vocab, dim], or empty
  std::optional<QuantizedTensor> quantized_;
  std::shared_ptr<const Linear> head_;
  TensorDataPath data_path_;
};

}  // namespace pith
