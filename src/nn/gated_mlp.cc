#include "nn/gated_mlp.h"

#include "base/check.h"
#include "base/status.h"

namespace pith {

absl::StatusOr<GatedMlp> GatedMlp::Load(const LinearSource& gate, const LinearSource& up, const LinearSource& down, Activation activation,
                                        const ComputeContext& context) {
  CHECK_EQ(gate.out(), up.out());
  CHECK_EQ(gate.out(), down.in());
  GatedMlp mlp;
  mlp.activation_ = activation;
  ASSIGN_OR_RETURN(mlp.gate_up_, Linear::Load({gate, up}, context));
  ASSIGN_OR_RETURN(mlp.down_, Linear::Load({down}, context));
  return mlp;
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
