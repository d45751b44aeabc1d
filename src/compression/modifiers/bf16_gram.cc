#include "compression/modifiers/bf16_gram.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/float_types.h"
#include "kernels/gemm_problem.h"
#include "kernels/selection.h"

namespace pith {
namespace {

constexpr int64_t kStrip = 16, kRows = 64;  // columns and rows that are transposed together

uint16_t* Bits(AlignedBuffer& buffer) { return reinterpret_cast<uint16_t*>(buffer.data()); }
const uint16_t* Bits(const AlignedBuffer& buffer) { return reinterpret_cast<const uint16_t*>(buffer.data()); }

}  // namespace

std::unique_ptr<Bf16Gram> Bf16Gram::Make(int64_t in, int64_t tile, int64_t block_rows, Isa isa) {
  if (isa < Isa::kAmx) return nullptr;
  const absl::StatusOr<GemmSelection> selection = SelectGemm(GemmWeight::kBf16, DescribeDenseGemm(std::min(in, tile), block_rows), isa);
  if (!selection.ok() || selection->kernel->isa != KernelIsa::kAmx) return nullptr;
  return std::unique_ptr<Bf16Gram>(new Bf16Gram(in, tile, block_rows, selection->kernel));
}

Bf16Gram::Bf16Gram(int64_t in, int64_t tile, int64_t block_rows, const GemmKernelEntry* kernel)
    : in_(in), tile_(tile), block_rows_(block_rows), kernel_(kernel), packed_bytes_(kernel->prepack_bytes(Problem(0))) {
  packed_bytes_ = (packed_bytes_ + 63) / 64 * 64;
  for (AlignedBuffer* part : {&high_, &low_}) *part = AlignedBuffer(static_cast<size_t>(in * block_rows) * sizeof(uint16_t));
  for (AlignedBuffer* packed : {&packed_high_, &packed_low_}) *packed = AlignedBuffer(static_cast<size_t>(num_tiles()) * packed_bytes_);
  has_low_.resize(static_cast<size_t>(num_tiles()));
}

GemmProblem Bf16Gram::Problem(int64_t i) const { return DescribeDenseGemm(std::min(tile_, in_ - i * tile_), block_rows_); }

uint32_t Bf16Gram::LoadStrip(int64_t strip, int64_t columns, MatrixView<const float> rows) {
  uint32_t any_low = 0;
  float values[kStrip] = {};
  uint16_t high[kStrip][kRows], low[kStrip][kRows];  // collected here: in high_ and low_ all columns fall on the same cache lines' sets
  for (int64_t begin = 0; begin < block_rows_; begin += kRows) {
    const int64_t count = std::clamp(rows.rows - begin, int64_t{0}, std::min(kRows, block_rows_ - begin));
    for (int64_t r = 0; r < count; ++r) {
      std::memcpy(values, rows.row(begin + r) + strip, static_cast<size_t>(columns) * sizeof(float));
      for (int64_t c = 0; c < kStrip; ++c) {
        const bfloat16 upper = ToBfloat16(values[c]), lower = ToBfloat16(values[c] - ToFloat(upper));
        high[c][r] = upper.bits;
        low[c][r] = lower.bits;
        any_low |= lower.bits;
      }
    }
    const int64_t room = std::min(kRows, block_rows_ - begin);
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t offset = (strip + c) * block_rows_ + begin;
      std::fill(high[c] + count, high[c] + room, uint16_t{0});
      std::fill(low[c] + count, low[c] + room, uint16_t{0});
      std::copy_n(high[c], room, Bits(high_) + offset);
      std::copy_n(low[c], room, Bits(low_) + offset);
    }
  }
  return any_low;
}

bool Bf16Gram::LoadTile(int64_t i, MatrixView<const float> rows) {
  const int64_t end = std::min((i + 1) * tile_, in_);
  uint32_t any_low = 0;
  for (int64_t strip = i * tile_; strip < end; strip += kStrip) any_low |= LoadStrip(strip, std::min(kStrip, end - strip), rows);
  return any_low != 0;
}

void Bf16Gram::Prepack(int64_t i, const AlignedBuffer& part, AlignedBuffer& packed) {
  GemmPrepackParams params{.problem = Problem(i), .dense = Bits(part) + i * tile_ * block_rows_};
  params.out = packed.data() + static_cast<size_t>(i) * packed_bytes_;
  params.panel_end = (params.problem.n + kGemmPanel - 1) / kGemmPanel;
  kernel_->prepack(params);
}

void Bf16Gram::Load(MatrixView<const float> rows, ThreadPool& pool) {
  CHECK(rows.cols == in_ && rows.rows <= block_rows_);
  pool.ParallelForDynamic(num_tiles(), 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      has_low_[static_cast<size_t>(i)] = LoadTile(i, rows);
      Prepack(i, high_, packed_high_);
      if (has_low_[static_cast<size_t>(i)]) Prepack(i, low_, packed_low_);
    }
  });
}

void Bf16Gram::Run(int64_t i, int64_t j, const AlignedBuffer& left, const AlignedBuffer& right, bool accumulate,
                   MatrixView<float> out) const {
  GemmParams params{.problem = Problem(j), .weight = right.data() + static_cast<size_t>(j) * packed_bytes_};
  params.activation = Bits(left) + i * tile_ * block_rows_;
  params.activation_stride = block_rows_;
  params.m = out.rows;
  params.out = out.data;
  params.out_stride = out.stride;
  params.accumulate = accumulate;
  params.panel_end = (params.problem.n + kGemmPanel - 1) / kGemmPanel;
  kernel_->run(params);
}

void Bf16Gram::MultiplyTile(int64_t i, int64_t j, MatrixView<float> out) const {
  DCHECK(out.rows == Problem(i).n && out.cols == Problem(j).n);
  Run(i, j, high_, packed_high_, false, out);
  // Products with parts that are all zero would add zeros.
  if (has_low_[static_cast<size_t>(j)]) Run(i, j, high_, packed_low_, true, out);
  if (has_low_[static_cast<size_t>(i)]) Run(i, j, low_, packed_high_, true, out);
}

}  // namespace pith
