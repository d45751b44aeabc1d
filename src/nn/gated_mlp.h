// The feed-forward block of a decoder layer: down(act(gate(x)) * up(x)), gate and up as one matrix where their formats allow.
#pragma once

#include <cstdint>

#include "kernels/activation.h"
#include "nn/compute_context.h"
#include "nn/linear.h"

namespace pith {

class GatedMlp {
 public:
  GatedMlp() = default;
  // gate_up [2 * intermediate, hidden], gate first; down [hidden, intermediate].
  GatedMlp(Linear gate_up, Linear down, Activation activation);

  int64_t intermediate_size() const { return down_.in(); }
  const Linear& gate_up() const { return gate_up_; }
  const Linear& down() const { return down_; }

  // Rows [row, row + m) of x, prepared for gate_up() -> rows [0, m) of `activation`, prepared for down().
  // `gate_up` is scratch for [m, 2 * intermediate] floats.
  //
  // One section of the pool: every thread computes its columns of gate and up, a block at a time, and activates, multiplies and stores a
  // block while it is in cache. A second section stores the rows where down() wants them whole (one scale for a row), or where there are
  // too few groups of columns to share out evenly.
  void RunGateUp(const ComputeContext& context, const LinearInput& x, int64_t row, int64_t m, float* gate_up,
                 LinearInput& activation) const;
  // out [m, hidden] f32, contiguous, = or += down(activation).
  void RunDown(const ComputeContext& context, const LinearInput& activation, int64_t m, float* out, bool accumulate) const;

  int64_t resident_bytes() const { return gate_up_.resident_bytes() + down_.resident_bytes(); }

 private:
  struct Pass {  // the arguments of RunGateUp
    const ComputeContext& context;
    const LinearInput& x;
    int64_t row, m;
    float* scratch;
    LinearInput& activation;
  };
  // gate = act(gate) * up, of a row.
  void Activate(const ComputeContext& context, float* gate, const float* up, int64_t columns) const;
  // A thread's columns, in blocks of whole units; with `store` into the activation, else into the first half of the scratch.
  void RunColumns(const Pass& pass, int64_t unit, bool store, int64_t begin, int64_t end) const;
  // Where gate and up share a panel: the product, then the rest row by row.
  void RunWhole(const Pass& pass) const;

  Linear gate_up_, down_;
  Activation activation_ = Activation::kSilu;
};

}  // namespace pith
