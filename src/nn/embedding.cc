#include "nn/embedding.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "nn/dense_weight.h"

namespace pith {

absl::StatusOr<Embedding> Embedding::LoadDense(const LinearSource& source, const ComputeContext& context) {
  CHECK(source.dense != nullptr);
  absl::Span<uint8_t> bytes;
  Embedding embedding = FromPrepacked(DescribeStorage(source), context, bytes);
  RETURN_IF_ERROR(ConvertToBfloat16(absl::StrCat(source.name, ".weight"), *source.dense, *context.pool,
                                    absl::MakeSpan(reinterpret_cast<uint16_t*>(bytes.data()), bytes.size() / sizeof(uint16_t))));
  return embedding;
}

Embedding Embedding::FromPrepacked(TensorDataPath storage, const ComputeContext& context, absl::Span<uint8_t>& bytes) {
  Embedding embedding;
  embedding.dense_ = AlignedBuffer(static_cast<size_t>(storage.out * storage.in) * sizeof(uint16_t));
  bytes = {embedding.dense_.data(), embedding.dense_.size()};
  TensorDataPath& path = embedding.data_path_;
  path = std::move(storage);
  path.resident_bytes = static_cast<int64_t>(embedding.dense_.size());
  path.output = "f32";
  path.isa = std::string(IsaName(context.operators.isa));
  for (const std::string& name : context.operators.names) {
    if (name.starts_with("embedding_")) path.kernel = name;
  }
  return embedding;
}

Embedding::Embedding(TensorDataPath storage, std::shared_ptr<const Linear> matrix)
    : matrix_(std::move(matrix)), data_path_(std::move(storage)) {
  CHECK_EQ(matrix_->out(), data_path_.out);
  data_path_.output = "f32";
  data_path_.isa = matrix_->data_path()[0].isa;  // of the layout; a look-up copies a row and needs no vectors
  data_path_.kernel = absl::StrCat("read_row of ", matrix_->data_path()[0].kernel);
}

absl::StatusOr<Embedding> Embedding::LoadQuantized(const LinearSource& source, const ComputeContext& context) {
  CHECK(source.quantized != nullptr);
  ASSIGN_OR_RETURN(Linear matrix, Linear::Load({source}, context));
  return OfMatrix(DescribeStorage(source), std::move(matrix));
}

Embedding Embedding::OfMatrix(TensorDataPath storage, Linear matrix) {
  Embedding embedding(std::move(storage), std::make_shared<const Linear>(std::move(matrix)));
  embedding.data_path_.resident_bytes = embedding.matrix_->resident_bytes();
  return embedding;
}

Embedding Embedding::Tied(TensorDataPath storage, std::shared_ptr<const Linear> head) {
  return Embedding(std::move(storage), std::move(head));
}

void Embedding::Run(const ComputeContext& context, absl::Span<const int32_t> tokens, float scale, float* out, int64_t out_stride) const {
  const int64_t dim = this->dim();
  context.ForRows(static_cast<int64_t>(tokens.size()), dim, [&](int64_t begin, int64_t end) {
    if (matrix_ == nullptr) {
      context.operators.embedding({.table = reinterpret_cast<const uint16_t*>(dense_.data()),
                                   .token = tokens.data() + begin,
                                   .scale = scale,
                                   .out = out + begin * out_stride,
                                   .out_stride = out_stride,
                                   .num_rows = end - begin,
                                   .dim = dim});
      return;
    }
    for (int64_t r = begin; r < end; ++r) {
      float* row = out + r * out_stride;
      matrix_->ReadRow(tokens[r], row);
      for (int64_t i = 0; i < dim; ++i) row[i] *= scale;
    }
  });
}

}  // namespace pith
