#include "compression/pipelines/layer_quantizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "compression/scaled_layer.h"
#include "quantization/formats/format_table.h"
#include "quantization/formats/input_scale.h"
#include "quantization/formats/outlier_columns.h"
#include "quantization/qparams.h"
#include "tensor/store_float.h"

namespace pith {
namespace {

constexpr int64_t kCopyChunk = 1 << 16;  // values that are converted at a time

// What scales are rounded to: the model's dtype. bitsandbytes stores 127 times a scale as F32, which gives back scales of 16 bits exactly.
DType ScaleDType(const PlannedModule& module, DType model_dtype) {
  return module.scheme.format == "bitsandbytes" && model_dtype == DType::kF32 ? DType::kBF16 : model_dtype;
}

}  // namespace

absl::StatusOr<QuantizedTensor> QuantizeModule(const PlannedModule& module, const CompressionPlan& plan, MatrixView<const float> weight,
                                               InputStatistics* input, const std::optional<InputQuantization>& activations,
                                               WeightQuantizer& quantizer, ThreadPool& pool, StageResult& result) {
  LinearLayer layer{.name = module.name, .weight = weight, .args = module.args(), .scale_dtype = ScaleDType(module, plan.model_dtype)};
  if (activations.has_value()) layer.outlier_columns = activations->outlier_columns;
  ASSIGN_OR_RETURN(QuantizedLayer quantized, quantizer.Quantize(layer, input, pool));
  if (!layer.outlier_columns.empty()) {
    KeepOutlierColumns(weight, layer.outlier_columns, quantized.weight);
    std::vector<std::string> notes = std::move(quantized.report.notes);
    quantized.report = MakeLayerReport(module.name, weight, quantized.weight);
    quantized.report.notes = std::move(notes);
  }
  result.layers.push_back(std::move(quantized.report));
  ASSIGN_OR_RETURN(auto tensors, EncodeWeight(module.scheme.format, quantized.weight, module.args()));
  for (StoredTensor& tensor : tensors) result.tensors.push_back({absl::StrCat(module.name, ".", tensor.suffix), std::move(tensor.tensor)});
  if (activations.has_value() && !activations->args.dynamic) {
    StoredTensor scale = EncodeInputScale(activations->static_scale, plan.model_dtype);
    result.tensors.push_back({absl::StrCat(module.name, ".", scale.suffix), std::move(scale.tensor)});
  }
  return std::move(quantized.weight);
}

absl::Status CopyTensor(const TensorSpec& spec, const TensorView& tensor, StageResult& result) {
  Tensor copy(spec.dtype, tensor.shape);
  if (tensor.dtype == spec.dtype) {
    std::memcpy(copy.data(), tensor.data, static_cast<size_t>(tensor.num_bytes()));
  } else {
    const int64_t count = tensor.num_elements();
    std::vector<float> values(static_cast<size_t>(std::min(count, kCopyChunk)));
    for (int64_t begin = 0; begin < count; begin += kCopyChunk) {
      const int64_t size = std::min(kCopyChunk, count - begin);
      RETURN_IF_ERROR(ConvertToFloat({tensor.dtype, {size}, tensor.data + begin * ByteSize(tensor.dtype)},
                                     absl::MakeSpan(values).first(static_cast<size_t>(size))));
      for (int64_t i = 0; i < size; ++i) {
        const float value = values[static_cast<size_t>(i)];
        if (!std::isfinite(RoundToDType(value, spec.dtype))) {
          return BadFileError(spec.name, ": expected finite values of ", DTypeName(spec.dtype), ", found ", value, " at index ", begin + i);
        }
        StoreFloat(value, begin + i, copy);
      }
    }
  }
  result.tensors.push_back({spec.name, std::move(copy)});
  return absl::OkStatus();
}

absl::StatusOr<StageResult> RunDataFreeStage(const ArtifactReader& reader, const CompressionPlan& plan, const Stage& stage,
                                             WeightQuantizer& quantizer, ThreadPool& pool, const CompressionProgress& progress) {
  StageResult result;
  for (const PlannedModule* module : stage.modules) {
    if (module->quantized) {
      ASSIGN_OR_RETURN(const Tensor matrix, ReadMatrix(reader, module->name));
      const MatrixView<const float> view(matrix.as<float>().data(), module->out, module->in);
      RETURN_IF_ERROR(QuantizeModule(*module, plan, view, nullptr, std::nullopt, quantizer, pool, result).status());
    } else {
      ASSIGN_OR_RETURN(const Weight weight, reader.ReadWeight(module->name));
      RETURN_IF_ERROR(CopyTensor(module->tensors.front(), *weight.dense, result));
    }
    RETURN_IF_ERROR(progress(1));
  }
  for (const TensorSpec* spec : stage.plain_tensors) {
    ASSIGN_OR_RETURN(const std::optional<Weight> tensor, reader.ReadTensor(spec->name));
    RETURN_IF_ERROR(CopyTensor(*spec, *tensor->dense, result));
  }
  return result;
}

}  // namespace pith
