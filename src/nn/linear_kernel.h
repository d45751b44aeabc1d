// Which kernel multiplies a weight matrix, and with what: activations as the artifact declares them, else as the context says.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/gemm.h"
#include "kernels/kernel_entry.h"
#include "nn/compute_context.h"
#include "nn/linear_input.h"
#include "quantization/quantization_args.h"

namespace pith {

struct LinearKernel {
  const GemmKernelEntry* kernel = nullptr;
  InputFormat input;  // what it multiplies with
  // With input.outlier_columns: the kernel that adds their products with the bf16 columns of the weights; else null.
  const GemmKernelEntry* outlier_kernel = nullptr;
  GemmProblem outlier_problem;       // k: the columns
  std::string activation;            // the same in words, and what was declared where that is something else
  std::vector<std::string> refused;  // "gemm_int8_w4g_f32__scalar: group_size % 8 != 0", "amx: no row for bf16 activations times w4g"
};

// Fills what the matrix is multiplied with into `problem`. Where an artifact declares quantized inputs (`input`):
//   int8 with a scale per token, integer weights per channel or tensor    one int8 scale per row
//   the same, weights in groups                                           one per row and group: finer, an outlier spoils its group only
//   int8 per group; int8 static per tensor                                as declared
//   int8 per token with outliers (LLM.int8()), one-byte codes             one int8 scale per row, outliers left out: those from the
//                                                                         threshold on, or the columns of the input
//   fp8 with a scale per token, or static, fp8 weights                    as declared
// Dynamic scales per tensor become scales per row, so that a row does not depend on its neighbours. Everything else, and what no kernel can
// run, is multiplied with bf16. Without `input` weight-only matrices take what the context asks for (WeightOnlyActivation), else bf16.
// Every refusal is kept. Errors: kUnimplemented listing every refusal.
absl::StatusOr<LinearKernel> SelectLinearKernel(GemmWeight family, const std::optional<InputQuantization>& input, GemmProblem& problem,
                                                const ComputeContext& context);

}  // namespace pith
