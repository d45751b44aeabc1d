// The scheme LLM_INT8 as it was published: int8 codes per row from the largest weight of the row, and the channels of an input that are
// outliers. Source: Dettmers et al. 2022 (arXiv 2208.07339), section 3.2; docs/methods/llm_int8.md.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/modifier.h"

namespace pith {

// The channels whose largest magnitude is at least `threshold`, ascending. `max_abs`: of each channel, over the calibration data. Pure.
std::vector<int32_t> FindOutlierColumns(absl::Span<const float> max_abs, float threshold);

// Rounds to nearest without a search. Errors: kUnimplemented for another scheme than LLM_INT8.
absl::StatusOr<std::unique_ptr<WeightQuantizer>> MakeLlmInt8Quantizer(const Recipe& recipe);

}  // namespace pith
