// Least-squares scales for codes that are fixed: what rounding and error feedback left over of the output error, the scale of each group
// can still lower. A pure function of matrices.
//
// With c_g the codes less their zero points of group g (0 elsewhere) and e the error of a row, new scales s + delta solve
//   (C^T D C) delta = C^T D e,   D = H + d I,   C = [c_1 ... c_G]
// (a ridge of 1e-6 of its diagonal keeps the matrix regular). They are rounded to the stored dtype, and a row takes them only where that
// lowers both its loss e H e^T and the damped one: the damping keeps scales that few calibration rows do not decide where they were.
// Source: ours; the normal equations of the loss of Frantar et al. 2022 (arXiv 2210.17323), equation 1.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "quantization/quantized_tensor.h"
#include "tensor/tensor.h"

namespace pith {

struct ScaleRefit {
  int64_t rows = 0;  // rows with new scales
  double gain = 0;   // by how much tr((W - Q) H (W - Q)^T) fell, >= 0
};

// Replaces scales of `quantized`: integer codes without `min` whose scales are per row and group (not repeated over rows), positive.
//   weight       [out, in]
//   hessian      [in, in] symmetric, finite
//   damping_term d >= 0
// Scales stay positive values of quantized.scale_dtype. Same bits for any number of threads: rows are shared out over `pool`.
// O(2 out in^2) time; 64 (3 in + G^2) floats of scratch per thread.
ScaleRefit RefitScales(MatrixView<const float> weight, MatrixView<const float> hessian, double damping_term, QuantizedTensor& quantized,
                       ThreadPool& pool);

}  // namespace pith
