#include "nn/embedding.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status.h"
#include "nn/dense_weight.h"

namespace pith {
namespace {

template <typename T> int64_t BytesOf(const std::vector<T>& values) { return static_cast<int64_t>(values.size() * sizeof(T)); }

}  // namespace

absl::StatusOr<Embedding> Embedding::LoadDense(const LinearSource& source, const ComputeContext& context) {
  CHECK(source.dense != nullptr);
  Embedding embedding;
  const int64_t count = source.out() * source.in();
  embedding.dense_ = AlignedBuffer(static_cast<size_t>(count) * sizeof(uint16_t));
  RETURN_IF_ERROR(ConvertToBfloat16(absl::StrCat(source.name, ".weight"), *source.dense, *context.pool,
                                    absl::MakeSpan(reinterpret_cast<uint16_t*>(embedding.dense_.data()), count)));
  TensorDataPath& path = embedding.data_path_;
  path = DescribeStorage(source);
  path.resident_bytes = static_cast<int64_t>(embedding.dense_.size());
  path.output = "f32";
  path.isa = std::string(IsaName(context.operators.isa));
  for (const std::string& name : context.operators.names) {
    if (name.starts_with("embedding_")) path.kernel = name;
  }
  return embedding;
}

absl::StatusOr<Embedding> Embedding::LoadQuantized(const std::string& name, QuantizedTensor table, int64_t stored_bytes) {
  const std::string tensor = absl::StrCat(name, ".weight");
  RETURN_IF_ERROR(CheckFinite(absl::StrCat(tensor, " (scale)"), table.scale, table.num_groups()));
  RETURN_IF_ERROR(CheckFinite(absl::StrCat(tensor, " (min)"), table.min, table.num_groups()));
  Embedding embedding;
  TensorDataPath& path = embedding.data_path_;
  path = DescribeStorage({.name = name, .quantized = &table, .stored_bytes = stored_bytes});
  path.resident_bytes = BytesOf(table.code) + BytesOf(table.scale) + BytesOf(table.zero_point) + BytesOf(table.min);
  path.output = "f32";
  path.isa = "scalar";
  path.kernel = "dequantize_row_f32__scalar";
  embedding.quantized_ = std::move(table);
  return embedding;
}

Embedding Embedding::Tied(const LinearSource& source, std::shared_ptr<const Linear> head) {
  CHECK_EQ(head->out(), source.out());
  Embedding embedding;
  TensorDataPath& path = embedding.data_path_;
  path = DescribeStorage(source);
  path.output = "f32";
  path.isa = head->data_path()[0].isa;  // of the layout; a look-up copies a row and needs no vectors
  path.kernel = absl::StrCat("read_row of ", head->data_path()[0].kernel);
  embedding.head_ = std::move(head);
  return embedding;
}

void Embedding::Run(const ComputeContext& context, absl::Span<const int32_t> tokens, float scale, float* out, int64_t out_stride) const {
  const int64_t dim = this->dim();
  context.ForRows(static_cast<int64_t>(tokens.size()), dim, [&](int64_t begin, int64_t end) {
    if (head_ == nullptr && !quantized_.has_value()) {
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
      if (head_ != nullptr) {
        head_->ReadRow(tokens[r], row);
      } else {
        quantized_->DequantizeRow(tokens[r], absl::MakeSpan(row, dim));
      }
      for (int64_t i = 0; i < dim; ++i) row[i] *= scale;
    }
  });
}

}  // namespace pith
