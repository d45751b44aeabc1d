#include "nn/prepacked_weight.h"

namespace pith {

GemmProblemFields FieldsOf(const GemmProblem& problem) {
  const auto& [n, k, group_size, bits, has_zero_point, has_min, scale, unit_size, activation, activation_group] = problem;
  return {n,
          k,
          group_size,
          bits,
          has_zero_point,
          has_min,
          static_cast<int64_t>(scale),
          unit_size,
          static_cast<int64_t>(activation),
          activation_group};
}

}  // namespace pith
