// What a module stores of its quantized input: a static scale.
//
//   input_scale        BF16, F16 or F32 [1]; with static activations only
//   input_zero_point   [1], zero; may be left out
// Byte-level page: docs/formats/compressed_tensors.md. All functions are pure and thread-safe.
#pragma once

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "quantization/formats/stored_tensors.h"
#include "quantization/quantization_args.h"

namespace pith {

// The tensors of the weight (first) and those of the input (second) of a module.
std::pair<ModuleTensors, ModuleTensors> SplitInputTensors(const ModuleTensors& tensors);

// Presence, dtype and value. `input`: the activations of the module's scheme, which ValidateInput accepts.
// Errors: kDataLoss for a scale that is missing, unexpected (the scheme has none), misshapen, not finite or not positive; kUnimplemented
// for a zero point other than 0.
absl::StatusOr<std::optional<InputQuantization>> ReadInputQuantization(const ModuleTensors& tensors,
                                                                       const std::optional<QuantizationArgs>& input);

// The scale of static activations `args` whose largest magnitude is max_abs (finite, >= 0), as `dtype` holds it; of an input that was
// always 0: 1.
float StaticInputScale(const QuantizationArgs& args, float max_abs, DType dtype);
// input_scale of a value that `dtype` holds exactly.
StoredTensor EncodeInputScale(float scale, DType dtype);
inline constexpr absl::string_view kInputScaleSuffix = "input_scale";

}  // namespace pith
