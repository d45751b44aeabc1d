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
  void RunGateUp(const ComputeContext& context, const LinearInput& x, int64_t row, int64_t m, float* gate_up,
                 LinearInput& activation) const;
  // out [m, hidden] f32, contiguous, = or += down(activation).
  void RunDown(const ComputeContext& context, const LinearInput& activation, int64_t m, float* out, bool accumulate) const;

  int64_t resident_bytes() const { return gate_up_.resident_bytes() + down_.resident_bytes(); }

 private:
  Linear gate_up_, down_;
  Activation activation_ = Activation::kSilu;
};

}  // namespace pith
