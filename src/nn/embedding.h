// Token embedding: a table of bf16 rows, or a matrix as kernels read it, whose rows are read back one by one: its own where the table is
// quantized (no form of it is smaller), or that of a tied head.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nn/compute_context.h"
#include "nn/data_path.h"
#include "nn/linear.h"

namespace pith {

class Embedding {
 public:
  Embedding() = default;
  // A copy of a dense [vocab, dim] table, rounded to bf16. Errors: kDataLoss for NaN or infinities.
  static absl::StatusOr<Embedding> LoadDense(const LinearSource& source, const ComputeContext& context);
  // Errors: those of Linear::Load.
  static absl::StatusOr<Embedding> LoadQuantized(const LinearSource& source, const ComputeContext& context);

  // The same as LoadDense from a table that an equal embedding gave away: `bytes` gets the memory that the caller fills before the first
  // Run. `storage`: as DescribeStorage gave it.
  static Embedding FromPrepacked(TensorDataPath storage, const ComputeContext& context, absl::Span<uint8_t>& bytes);
  // Rows of a matrix of its own, which counts as resident here.
  static Embedding OfMatrix(TensorDataPath storage, Linear matrix);
  // Looks rows up in `head`, whose weights are the table: nothing is kept twice. `storage` describes the stored table.
  static Embedding Tied(TensorDataPath storage, std::shared_ptr<const Linear> head);

  int64_t vocab_size() const { return data_path_.out; }
  int64_t dim() const { return data_path_.in; }

  // out[r] = scale * table[tokens[r]], rows out_stride floats apart. Tokens lie in [0, vocab_size).
  void Run(const ComputeContext& context, absl::Span<const int32_t> tokens, float scale, float* out, int64_t out_stride) const;

  // What FromPrepacked and OfMatrix take: bf16 bits [vocab, dim], or empty; the matrix, or null.
  absl::Span<const uint8_t> table() const { return {dense_.data(), dense_.size()}; }
  const Linear* matrix() const { return matrix_.get(); }

  const TensorDataPath& data_path() const { return data_path_; }
  int64_t resident_bytes() const { return data_path_.resident_bytes; }  // tied: 0, they are the head's
  // What a look-up of one token reads.
  int64_t row_bytes() const { return (matrix_ != nullptr ? matrix_->resident_bytes() : resident_bytes()) / vocab_size(); }

 private:
  // Rows are read back from `matrix`.
  Embedding(TensorDataPath storage, std::shared_ptr<const Linear> matrix);

  AlignedBuffer dense_;  // bf16 bits [vocab, dim], or empty
  std::shared_ptr<const Linear> matrix_;
  TensorDataPath data_path_;
};

}  // namespace pith
