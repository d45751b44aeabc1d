#include "nn/gated_mlp.h"

#include <utility>

#include "base/check.h"

namespace pith {

GatedMlp::GatedMlp(Linear gate_up, Linear down, Activation activation)
    : gate_up_(std::move(gate_up)), down_(std::move(down)), activation_(activation) {
  CHECK_EQ(gate_up_.out(), 2 * down_.in());
  CHECK_EQ(gate_up_.in(), down_.out());
}

void GatedMlp::RunGateUp(const ComputeContext& context, const LinearInput& x, int64_t row, int64_t m, float* gate_up,
                         LinearInput& activation) const {
  const int64_t dim = intermediate_size();
  gate_up_.Run(context, x, row, m, gate_up, 2 * dim);
  context.ForRows(m, 4 * dim, [&](int64_t begin, int64_t end) {  // an exponential costs several plain operations
    for (int64_t r = begin; r < end; ++r) {
      float* gate = gate_up + r * 2 * dim;
      context.operators.gated_activation({.gate = gate,
                                          .up = gate + dim,
                                          .gate_stride = 2 * dim,
                                          .up_stride = 2 * dim,
                                          .out_f32 = gate,
                                          .out_stride = 2 * dim,
                                          .num_rows = 1,
                                          .dim = dim,
                                          .activation = activation_});
      activation.Store(context, r, 1, gate, 2 * dim);
    }
  });
}

void GatedMlp::RunDown(const ComputeContext& context, const LinearInput& activation, int64_t m, float* out, bool accumulate) const {
  down_.Run(context, activation, 0, m, out, down_.out(), accumulate);
}

}  // namespace pith
