// Round to nearest, with the clipping range of each group searched for the smallest |w - q|^2.4 (recipe.clip_search), weighted by the mean
// square of the weight's input channel where statistics of the input are at hand. Source: llm-compressor's `mse` and `imatrix_mse`
// observers; docs/methods/rtn.md.
#pragma once

#include <memory>

#include "compression/modifier.h"

namespace pith {

absl::StatusOr<std::unique_ptr<WeightQuantizer>> MakeRtnQuantizer(const Recipe& recipe);

}  // namespace pith
