#include "compression/modifiers/llm_int8.h"

#include "base/status.h"
#include "compression/modifiers/rtn.h"

namespace pith {

std::vector<int32_t> FindOutlierColumns(absl::Span<const float> max_abs, float threshold) {
  std::vector<int32_t> columns;
  for (size_t i = 0; i < max_abs.size(); ++i) {
    if (max_abs[i] >= threshold) columns.push_back(static_cast<int32_t>(i));
  }
  return columns;
}

absl::StatusOr<std::unique_ptr<WeightQuantizer>> MakeLlmInt8Quantizer(const Recipe& recipe) {
  if (!recipe.scheme.HasOutliers()) {
    return NotSupportedError("--method llm_int8: expected scheme LLM_INT8, found ", recipe.scheme.name);
  }
  Recipe published = recipe;
  published.clip_search = kNoClipSearch;
  return MakeRtnQuantizer(published);
}

}  // namespace pith
