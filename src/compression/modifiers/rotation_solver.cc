#include "compression/modifiers/rotation_solver.h"

#include "base/status.h"

namespace pith {
namespace {

std::optional<uint64_t> SeedOf(const RotationOptions& options) {
  return options.random_signs ? std::optional<uint64_t>(options.seed) : std::nullopt;
}

bool ReadsNorm(DecoderPart part) { return part == DecoderPart::kReader || part == DecoderPart::kValue; }
bool WritesResidual(DecoderPart part) { return part == DecoderPart::kAttentionOutput || part == DecoderPart::kMlpOutput; }

void RotateVector(const HadamardRotation& rotation, absl::Span<float> vector) {
  std::vector<double> x(vector.begin(), vector.end());
  rotation.Rotate(absl::MakeSpan(x));
  for (size_t i = 0; i < x.size(); ++i) vector[i] = static_cast<float>(x[i]);
}

}  // namespace

DecoderRotation::DecoderRotation(const DecoderConfig& config, const RotationOptions& options)
    : options_(options),
      hidden_(config.hidden_size),
      head_dim_(config.head_dim),
      num_heads_(config.num_heads),
      num_kv_heads_(config.num_kv_heads),
      norm_offset_(config.norm_weight_plus_one ? 1.0f : 0.0f) {}

absl::StatusOr<DecoderRotation> DecoderRotation::Create(const DecoderConfig& config, const RotationOptions& options) {
  if (options.residual && config.post_norms) {
    return NotSupportedError("rotation: ", config.model_type, " has norms after attention and MLP, whose weights fold into no layer");
  }
  DecoderRotation rotation(config, options);
  if (options.residual) {
    absl::StatusOr<HadamardRotation> residual = HadamardRotation::Create(config.hidden_size, SeedOf(options));
    if (!residual.ok()) return Annotate(residual.status(), "hidden_size");
    rotation.residual_ = *std::move(residual);
  }
  if (options.heads) RETURN_IF_ERROR(Annotate(HadamardRotation::Create(config.head_dim).status(), "head_dim"));
  return rotation;
}

HadamardRotation DecoderRotation::HeadRotation(int64_t layer) const {
  return *HadamardRotation::Create(head_dim_, SeedOf(options_), static_cast<uint64_t>(layer) + 1);  // the size was tried in Create
}

absl::Status DecoderRotation::CheckShape(DecoderPart part, absl::Span<const float> norm, const MatrixView<float>& matrix) const {
  if (WritesResidual(part) ? matrix.rows != hidden_ : matrix.cols != hidden_) {
    return UsageError("rotation: expected ", WritesResidual(part) ? "rows" : "columns", ": ", hidden_, ", found [", matrix.rows, ", ",
                      matrix.cols, "]");
  }
  if (part == DecoderPart::kValue && matrix.rows != num_kv_heads_ * head_dim_) {
    return UsageError("rotation: expected ", num_kv_heads_, " heads of ", head_dim_, " rows, found ", matrix.rows);
  }
  if (part == DecoderPart::kAttentionOutput && matrix.cols != num_heads_ * head_dim_) {
    return UsageError("rotation: expected ", num_heads_, " heads of ", head_dim_, " columns, found ", matrix.cols);
  }
  if (ReadsNorm(part) && options_.residual && static_cast<int64_t>(norm.size()) != hidden_) {
    return UsageError("rotation: norm: expected ", hidden_, " values, found ", norm.size());
  }
  return absl::OkStatus();
}

void DecoderRotation::FoldNorm(absl::Span<const float> norm, MatrixView<float> matrix, ThreadPool& pool) const {
  pool.ParallelFor(matrix.rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      for (int64_t c = 0; c < matrix.cols; ++c) matrix.row(r)[c] *= norm_offset_ + norm[static_cast<size_t>(c)];
    }
  });
}

absl::Status DecoderRotation::RotateMatrix(DecoderPart part, int64_t layer, absl::Span<const float> norm, MatrixView<float> matrix,
                                           ThreadPool& pool) const {
  RETURN_IF_ERROR(CheckShape(part, norm, matrix));
  if (options_.residual) {
    if (ReadsNorm(part)) FoldNorm(norm, matrix, pool);
    WritesResidual(part) ? residual_->RotateColumns(matrix, pool) : residual_->RotateRows(matrix, pool);
  }
  if (!options_.heads) return absl::OkStatus();
  if (part == DecoderPart::kValue) {
    const HadamardRotation heads = HeadRotation(layer);
    for (int64_t h = 0; h < num_kv_heads_; ++h) {
      heads.RotateColumns({matrix.row(h * head_dim_), head_dim_, matrix.cols, matrix.stride}, pool);
    }
  } else if (part == DecoderPart::kAttentionOutput) {
    const HadamardRotation heads = HeadRotation(layer);
    for (int64_t h = 0; h < num_heads_; ++h) {
      heads.RotateRows({matrix.data + h * head_dim_, matrix.rows, head_dim_, matrix.stride}, pool);
    }
  }
  return absl::OkStatus();
}

absl::Status DecoderRotation::RotateBias(DecoderPart part, int64_t layer, absl::Span<float> bias) const {
  if (!WritesResidual(part) && part != DecoderPart::kValue) return absl::OkStatus();
  const int64_t expected = WritesResidual(part) ? hidden_ : num_kv_heads_ * head_dim_;
  if (static_cast<int64_t>(bias.size()) != expected) {
    return UsageError("rotation: bias: expected ", expected, " values, found ", bias.size());
  }
  if (WritesResidual(part)) {
    if (options_.residual) RotateVector(*residual_, bias);
    return absl::OkStatus();
  }
  if (!options_.heads) return absl::OkStatus();
  const HadamardRotation heads = HeadRotation(layer);
  for (int64_t h = 0; h < num_kv_heads_; ++h) {
    RotateVector(heads, bias.subspan(static_cast<size_t>(h * head_dim_), static_cast<size_t>(head_dim_)));
  }
  return absl::OkStatus();
}

}  // namespace pith
