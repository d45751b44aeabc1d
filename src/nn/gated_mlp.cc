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

void GatedMlp::RunGateUp(const ComputeContext& context, const uint16_t* x, int64_t m, float* gate_up, uint16_t* activation) const {
  const int64_t dim = intermediate_size();
  gate_up_.Run(context, x, gate_up_.in(), m, gate_up, 2 * dim);
  context.ForRows(m, 4 * dim, [&](int64_t begin, int64_t end) {  // an exponential costs several plain operations
    context.operators.gated_activation({.gate = gate_up + begin * 2 * dim,
                                        .up = gate_up + begin * 2 * dim + dim,
                                        .gate_stride = 2 * dim,
                                        .up_stride = 2 * dim,
                                        .out = activation + begin * dim,
                                        .out_stride = dim,
                                        .num_rows = end - begin,
                                        .dim = dim,
                                        .activation = activation_});
  });
}

void GatedMlp::RunDown(const ComputeContext& context, const uint16_t* activation, int64_t m, float* out, bool accumulate) const {
  down_.Run(context, activation, down_.in(), m, out, down_.out(), accumulate);
}

}  // namespace pith
