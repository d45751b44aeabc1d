// Stored formats of quantized weights: which tensors a module has on disk, and the way from and to QuantizedTensor.
// Formats define bytes (independent of any instruction set); the layout kernels read is made at load by their prepack.
//
//   weight_packed   I32 [out, ceil(in * bits / 32)]   pack-quantized
//   weight          I8  [out, in]                     int-quantized, naive-quantized of integers
//   weight          F8_E4M3 [out, in]                 float-quantized, naive-quantized of floats
//   weight_scale    BF16, F16 or F32; [out, in / group_size] group, [out, 1] channel, [1] tensor, [ceil(out / rows), in / columns] block
//   weight_zero_point   asymmetric only; pack-quantized: I32 [ceil(out * bits / 32), scale columns], else I8 of the scale's shape
//   weight_shape    I64 [2] = {out, in}               pack-quantized
// Formats of other quantizers (gptq, gptq_v2, awq, bitsandbytes, fp8-block) have tensors of their own; each has its page in docs/formats.
// Byte-level page of the above: docs/formats/compressed_tensors.md. All functions are pure and thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "quantization/formats/stored_tensors.h"
#include "quantization/quantization_args.h"
#include "quantization/quantized_tensor.h"

namespace pith {

struct QuantMethod;

// One row of THE TABLE.
struct WeightFormat {
  absl::string_view name;  // "pack-quantized"; with `type` it names a row
  QuantizationType type = QuantizationType::kInt;
  int min_bits, max_bits;
  absl::string_view weight_suffix;                  // the tensor that holds the codes
  absl::string_view scale_suffix = "weight_scale";  // the tensor that holds the scales
  std::optional<DType> scale_dtype;                 // the one it writes scales as; nullopt: that of the weight
  // nullptr, or what of `args` and `shape` the format cannot hold: "expected ..., found ..." after the format's name. A shape of zeros is
  // not known yet. Null: it holds whatever the other fields allow.
  const char* (*refusal)(const QuantizationArgs& args, MatrixShape shape) = nullptr;
  // Shape of the weight matrix. Reads the data of weight_shape where the format has one.
  absl::StatusOr<MatrixShape> (*read_shape)(const ModuleTensors& tensors, const QuantizationArgs& args);
  // The tensors `encode` will give, in its order.
  std::vector<StoredTensorSpec> (*layout)(const QuantizationArgs& args, MatrixShape shape, DType scale_dtype);
  // Tensors in the order they are best written. `args` says the strategy and whether zero points are stored.
  absl::StatusOr<std::vector<StoredTensor>> (*encode)(const QuantizedTensor& weight, const QuantizationArgs& args);
  // Presence, dtypes and shapes only; no data is read but weight_shape.
  absl::Status (*check)(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape);
  // Runs `check` first.
  absl::StatusOr<QuantizedTensor> (*decode)(const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape);
  // What a user should know of tensors that have passed `check` (a wrong label that decode corrects); empty: nothing. May be null.
  std::string (*note)(const ModuleTensors& tensors, const QuantizationArgs& args) = nullptr;
  // How config.json says that weights are stored so; null for the formats of compressed-tensors (quantization_config.h).
  const QuantMethod* method = nullptr;
};

// THE TABLE (format_table.cc).
absl::Span<const WeightFormat* const> WeightFormats();

// What the row's `note` says; empty when it has none.
std::string NoteOnWeight(absl::string_view format, const ModuleTensors& tensors, const QuantizationArgs& args);

// The first row of that name. Errors: kUnimplemented with the known names.
absl::StatusOr<const WeightFormat*> FindWeightFormat(absl::string_view name);

// The functions below look the row of the name and args.type up and refuse what the format cannot hold (kUnimplemented).

// Names, dtypes and shapes of what EncodeWeight will give for an [out, in] weight: sizes are known before anything is quantized.
// Errors: kInvalidArgument when the group size does not divide `in`.
absl::StatusOr<std::vector<StoredTensorSpec>> PlanWeight(absl::string_view format, const QuantizationArgs& args, MatrixShape shape,
                                                         DType scale_dtype);

// Tensors of one module in `format`; scales are stored as the format's scale_dtype or else weight.scale_dtype, which holds them exactly.
// Errors: kInvalidArgument when `weight` and `args` disagree (bits, groups, zero points); kUnimplemented for a scale or zero point that
// the format cannot hold.
absl::StatusOr<std::vector<StoredTensor>> EncodeWeight(absl::string_view format, const QuantizedTensor& weight,
                                                       const QuantizationArgs& args);

// Shape of the module's weight matrix: {out, in}. Errors: kDataLoss naming the tensor, the expectation and the finding.
absl::StatusOr<MatrixShape> ReadWeightShape(absl::string_view format, const QuantizationArgs& args, const ModuleTensors& tensors);

// Whether the tensors of a module are those of `format` for an [out, in] weight: a missing, unexpected or misshapen tensor or a wrong
// dtype is kDataLoss. Meant for opening an artifact: touches no weight data.
absl::Status CheckWeight(absl::string_view format, const ModuleTensors& tensors, const QuantizationArgs& args, MatrixShape shape);

// The weight. Errors: those of CheckWeight; kDataLoss for a code outside the bit range or that is NaN, a scale that is not finite, zero
// points in a symmetric weight that are not zero; kUnimplemented for a weight_g_idx other than i / group_size (activation order).
absl::StatusOr<QuantizedTensor> DecodeWeight(absl::string_view format, const ModuleTensors& tensors, const QuantizationArgs& args,
                                             MatrixShape shape);

}  // namespace pith
