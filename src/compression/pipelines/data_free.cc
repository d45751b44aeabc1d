#include "compression/pipelines/data_free.h"

#include "base/status.h"
#include "quantization/formats/format_table.h"

namespace pith {
namespace {

absl::Status QuantizeModule(const PlannedModule& module, const Weight& weight, const CompressionPlan& plan, Modifier& modifier,
                            ArtifactWriter& writer, ThreadPool& pool, CompressionReport& report) {
  std::vector<float> values(static_cast<size_t>(module.out * module.in));
  RETURN_IF_ERROR(ConvertToFloat(*weight.dense, absl::MakeSpan(values)));
  const LinearLayer layer{.name = module.name, .weight = {values.data(), module.out, module.in}, .model_dtype = plan.model_dtype};
  ASSIGN_OR_RETURN(const QuantizedLayer quantized, modifier.QuantizeLayer(layer, pool));
  report.layers.push_back(quantized.report);
  report.quantized_weights += module.out * module.in;
  ASSIGN_OR_RETURN(const auto tensors, EncodeWeight(plan.config.format, quantized.weight, plan.args));
  for (const StoredTensor& tensor : tensors) {
    RETURN_IF_ERROR(writer.WriteTensor(absl::StrCat(module.name, ".", tensor.suffix), tensor.tensor.view().bytes()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunDataFreePipeline(const ArtifactReader& reader, const CompressionPlan& plan, Modifier& modifier, ArtifactWriter& writer,
                                 ThreadPool& pool, const CompressionOptions& options, CompressionReport& report) {
  if (modifier.RequiresCalibrationData()) return BugError("data-free pipeline: expected a method without calibration data");
  int64_t done = 0;
  for (const PlannedModule& module : plan.modules) {
    ASSIGN_OR_RETURN(const Weight weight, reader.ReadWeight(module.name));
    if (module.quantized) {
      RETURN_IF_ERROR(QuantizeModule(module, weight, plan, modifier, writer, pool, report));
    } else {
      report.kept_weights += weight.dense->num_elements();
      RETURN_IF_ERROR(writer.WriteTensor(module.tensors.front().name, weight.dense->bytes()));
    }
    if (options.progress) RETURN_IF_ERROR(options.progress("quantizing", ++done, static_cast<int64_t>(plan.modules.size())));
  }
  for (const TensorSpec& spec : plan.plain_tensors) {
    ASSIGN_OR_RETURN(const std::optional<Weight> tensor, reader.ReadTensor(spec.name));
    report.kept_weights += tensor->dense->num_elements();
    RETURN_IF_ERROR(writer.WriteTensor(spec.name, tensor->dense->bytes()));
  }
  return absl::OkStatus();
}

}  // namespace pith
