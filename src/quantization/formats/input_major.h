// What the formats that store matrices input rows first ([in, out] and [groups, out]) share: scales and how they may be grouped.
// All functions are pure and thread-safe.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "quantization/formats/stored_tensors.h"

namespace pith {

// "scales": F16, BF16 or F32 [groups, out]. Errors: kDataLoss.
absl::Status CheckInputMajorScales(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape);

// A QuantizedTensor with its type, shape, grouping and scales filled in. The tensors are checked.
// Errors: kDataLoss for a scale that is not finite.
absl::StatusOr<QuantizedTensor> DecodeInputMajorScales(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape);

// "scales" as F16. Errors: kUnimplemented for one that F16 does not hold exactly.
absl::StatusOr<StoredTensor> EncodeInputMajorScales(const QuantizedTensor& weight, absl::string_view format);

// Scales per group or channel; else why not (see WeightFormat::refusal).
const char* RefuseInputMajorStrategy(const QuantizationArgs& args);

}  // namespace pith
