#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/status.h"
#include "compression/modifier.h"
#include "compression/modifiers/awq.h"
#include "compression/modifiers/gptq.h"
#include "compression/modifiers/llm_int8.h"
#include "compression/modifiers/rtn.h"
#include "compression/modifiers/smoothquant.h"

namespace pith {
namespace {

// THE TABLE.
constexpr MethodRow kMethods[] = {
    {"rtn", "round to nearest with a searched clipping range; data is optional", false, nullptr, MakeRtnQuantizer},
    {"gptq", "codes column by column, each making up for the errors before it", false, nullptr, MakeGptqQuantizer},
    {"awq", "scales channels by their activations, then rounds to nearest", false, MakeAwqScaler, MakeRtnQuantizer},
    {"awq+gptq", "scales as awq does, codes as gptq does", false, MakeAwqScaler, MakeGptqQuantizer},
    {"smoothquant", "moves outliers from int8 activations into weights, then rounds to nearest", false, MakeSmoothQuantScaler,
     MakeRtnQuantizer},
    {"smoothquant+gptq", "scales as smoothquant does, codes as gptq does", false, MakeSmoothQuantScaler, MakeGptqQuantizer},
    {"rotation", "spreads outliers over all channels by rotating the model's weights, then rounds to nearest; data is optional", true,
     nullptr, MakeRtnQuantizer},
    {"rotation+gptq", "rotates as rotation does, codes as gptq does", true, nullptr, MakeGptqQuantizer},
    {"llm_int8", "LLM_INT8 as published, by the largest weight of each row; data fix the outlier columns", false, nullptr,
     MakeLlmInt8Quantizer},
};

}  // namespace

absl::Span<const MethodRow> Methods() { return kMethods; }

absl::StatusOr<const MethodRow*> FindMethod(absl::string_view name) {
  for (const MethodRow& row : kMethods) {
    if (row.name == name) return &row;
  }
  return NotSupportedError("method \"", Printable(name, 40), "\": not known; known are auto, ",
                           absl::StrJoin(Methods(), ", ", [](std::string* out, const MethodRow& row) { absl::StrAppend(out, row.name); }));
}

absl::string_view BestMethod(const QuantizationScheme& scheme) {
  if (scheme.weights->type == QuantizationType::kFloat || scheme.HasOutliers()) return "rtn";
  if (scheme.weights->num_bits <= 4) return "awq+gptq";
  return scheme.input_activations.has_value() ? "smoothquant+gptq" : "gptq";
}

StatisticsLevel MethodParts::needs() const {
  return scaler == nullptr ? quantizer->needs() : std::max(scaler->needs(), quantizer->needs());
}

absl::StatusOr<MethodParts> MakeMethodParts(const Recipe& recipe) {
  ASSIGN_OR_RETURN(const MethodRow* row, FindMethod(recipe.method));
  MethodParts parts;
  if (row->make_scaler != nullptr) {
    ASSIGN_OR_RETURN(parts.scaler, row->make_scaler(recipe));
  }
  ASSIGN_OR_RETURN(parts.quantizer, row->make_quantizer(recipe));
  return parts;
}

}  // namespace pith
