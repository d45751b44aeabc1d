// Products of columns of a block of rows on the bf16 tile unit, several times the speed of f32 arithmetic. A number x is split into
// bf16 parts, high = bf16(x) and low = bf16(x - high), and
//   sum x y ~ sum high high + sum high low + sum low high,  each in f32,
// which leaves out low low and what low rounds away: at most 3 * 2^-16 of sum |x y|. Rows that are bf16
// numbers, as the inputs of bf16 layers are, have no low parts, and nothing is left out.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/cpu_features.h"
#include "base/thread_pool.h"
#include "kernels/kernel_entry.h"
#include "tensor/tensor.h"

namespace pith {

class Bf16Gram {
 public:
  // For blocks of at most `block_rows` rows of `in` columns, which are multiplied by tiles of `tile` columns (the last may be narrower).
  // Null when `isa` has no tile unit, or its kernel does not take the shape.
  static std::unique_ptr<Bf16Gram> Make(int64_t in, int64_t tile, int64_t block_rows, Isa isa);

  // Takes over rows [num_rows, in], num_rows <= block_rows. A number that is not finite makes every product with its column so.
  void Load(MatrixView<const float> rows, ThreadPool& pool);

  // out = columns(i)^T columns(j) of the rows loaded last, `columns(i)` being those of tile i. Any thread may call it for any tile; each
  // product is the same bits whatever the tile.
  void MultiplyTile(int64_t i, int64_t j, MatrixView<float> out) const;

 private:
  Bf16Gram(int64_t in, int64_t tile, int64_t block_rows, const GemmKernelEntry* kernel);

  int64_t num_tiles() const { return (in_ + tile_ - 1) / tile_; }
  GemmProblem Problem(int64_t i) const;
  // Splits and transposes columns [strip, strip + columns); not 0 when one of them has a low part.
  uint32_t LoadStrip(int64_t strip, int64_t columns, MatrixView<const float> rows);
  // The same of the columns of tile i.
  bool LoadTile(int64_t i, MatrixView<const float> rows);
  void Prepack(int64_t i, const AlignedBuffer& part, AlignedBuffer& packed);
  void Run(int64_t i, int64_t j, const AlignedBuffer& left, const AlignedBuffer& right, bool accumulate, MatrixView<float> out) const;

  int64_t in_, tile_, block_rows_;
  const GemmKernelEntry* kernel_;
  size_t packed_bytes_;                     // of a tile
  AlignedBuffer high_, low_;                // bf16 bits [in, block_rows]
  AlignedBuffer packed_high_, packed_low_;  // [num_tiles, packed_bytes_]
  std::vector<uint8_t> has_low_;            // [num_tiles]
};

}  // namespace pith
