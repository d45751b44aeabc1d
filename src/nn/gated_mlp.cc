#include "nn/gated_mlp.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace pith {
namespace {

// Of gate, and as many of up: 256 KiB that stay in a level-2 cache beside their weights and inputs. Longer blocks share more of the work
// that a matrix product does once for its rows (measured: half and twice as long are 5 to 8 and 0 to 4 % slower with AMX).
constexpr int64_t kBlockFloats = int64_t{1} << 15;

// Groups of columns per thread, from which on their split is even enough: at most an eighth more for one thread than for another.
constexpr int64_t kEvenUnits = 8;

}  // namespace

GatedMlp::GatedMlp(Linear gate_up, Linear down, Activation activation)
    : gate_up_(std::move(gate_up)), down_(std::move(down)), activation_(activation) {
  CHECK_EQ(gate_up_.out(), 2 * down_.in());
  CHECK_EQ(gate_up_.in(), down_.out());
}

void GatedMlp::Activate(const ComputeContext& context, float* gate, const float* up, int64_t columns) const {
  context.operators.gated_activation({.gate = gate,
                                      .up = up,
                                      .gate_stride = columns,
                                      .up_stride = columns,
                                      .out_f32 = gate,
                                      .out_stride = columns,
                                      .num_rows = 1,
                                      .dim = columns,
                                      .activation = activation_});
}

void GatedMlp::RunWhole(const Pass& pass) const {
  const int64_t dim = intermediate_size();
  gate_up_.Run(pass.context, pass.x, pass.row, pass.m, pass.scratch, 2 * dim);
  pass.context.ForRows(pass.m, 4 * dim, [&](int64_t begin, int64_t end) {  // an exponential costs several plain operations
    for (int64_t r = begin; r < end; ++r) {
      float* gate = pass.scratch + r * 2 * dim;
      Activate(pass.context, gate, gate + dim, dim);
      pass.activation.Store(pass.context, r, 1, gate, 2 * dim);
    }
  });
}

void GatedMlp::RunColumns(const Pass& pass, int64_t unit, bool store, int64_t begin, int64_t end) const {
  const int64_t dim = intermediate_size(), m = pass.m;
  const int64_t longest = std::max(unit, kBlockFloats / m / unit * unit);
  for (int64_t column = begin; column < end; column += longest) {
    const int64_t columns = std::min(longest, end - column);
    // The first half of the scratch holds gate, the second up; a thread uses as much of each as it has columns. What is stored at once
    // needs the room of one block, other rows stay for the second section.
    float* gate = store ? pass.scratch + m * begin : pass.scratch + column;
    float* up = pass.scratch + m * (dim + begin);
    const int64_t gate_stride = store ? columns : dim;
    gate_up_.RunColumns(pass.x, pass.row, m, column, column + columns, gate, gate_stride);
    gate_up_.RunColumns(pass.x, pass.row, m, dim + column, dim + column + columns, up, columns);
    for (int64_t r = 0; r < m; ++r, gate += gate_stride, up += columns) {
      Activate(pass.context, gate, up, columns);
      if (store) pass.activation.StoreColumns(pass.context, r, 1, column, columns, gate, columns);
    }
  }
}

void GatedMlp::RunGateUp(const ComputeContext& context, const LinearInput& x, int64_t row, int64_t m, float* gate_up,
                         LinearInput& activation) const {
  const int64_t dim = intermediate_size(), threads = context.pool->num_threads();
  const Pass pass{context, x, row, m, gate_up, activation};
  if (!gate_up_.IsPanelBegin(dim)) return RunWhole(pass);
  int64_t unit = std::lcm(activation.column_unit(), kGemmPanel);
  const bool store = activation.column_unit() < dim && (threads == 1 || dim >= unit * kEvenUnits * threads);
  if (!store) unit = kGemmPanel;
  context.pool->ParallelFor(dim, unit, [&](int64_t begin, int64_t end, int) { RunColumns(pass, unit, store, begin, end); });
  if (store) return;
  context.ForRows(m, dim, [&](int64_t begin, int64_t end) { activation.Store(context, begin, end - begin, gate_up + begin * dim, dim); });
}

void GatedMlp::RunDown(const ComputeContext& context, const LinearInput& activation, int64_t m, float* out, bool accumulate) const {
  down_.Run(context, activation, 0, m, out, down_.out(), accumulate);
}

}  // namespace pith
