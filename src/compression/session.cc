#include "compression/session.h"

#include <chrono>
#include <cmath>

#include "absl/strings/match.h"
#include "artifact/artifact_writer.h"
#include "artifact/module_names.h"
#include "base/status.h"
#include "compression/checkpoint.h"
#include "compression/modifier.h"
#include "compression/modifiers/rtn.h"
#include "compression/pipelines/layer_quantizer.h"
#include "compression/pipelines/sequential.h"
#include "compression/stage.h"
#include "quantization/formats/format_table.h"
#include "quantization/formats/outlier_columns.h"

namespace pith {
namespace {

// The position of the first value that is not finite, or -1.
int64_t FindNonFinite(absl::Span<const float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) return static_cast<int64_t>(i);
  }
  return -1;
}

// Looks at every weight before the first is quantized, so that a bad one is found in seconds, not after the work.
absl::Status CheckFinite(const ArtifactReader& reader, const CompressionPlan& plan, const CompressionOptions& options) {
  std::vector<float> values;
  int64_t done = 0;
  for (const PlannedModule& module : plan.modules) {
    const absl::StatusOr<Weight> weight = reader.ReadWeight(module.name);
    if (!weight.ok()) return weight.status();
    values.resize(static_cast<size_t>(weight->dense->num_elements()));
    RETURN_IF_ERROR(ConvertToFloat(*weight->dense, absl::MakeSpan(values)));
    if (const int64_t index = FindNonFinite(values); index >= 0) {
      return BadFileError(reader.path(), ": ", module.name, ".weight: expected finite values, found ", values[static_cast<size_t>(index)],
                          " at index ", index);
    }
    if (options.progress) RETURN_IF_ERROR(options.progress("checking", ++done, static_cast<int64_t>(plan.modules.size())));
  }
  return absl::OkStatus();
}

Json WithQuantizationConfig(Json config, const QuantizationConfig& quantization) {
  config["quantization_config"] = ToJson(quantization);
  return config;
}

// What report.json of the artifact says: all but what differs from run to run.
OrderedJson ArtifactReport(const CompressionReport& report) {
  OrderedJson json = {{"schema_version", 1}};
  json.update(ToJson(report));
  json.erase("seconds");
  json.erase("resumed_layers");
  return json;
}

// How each quantized module is stored. Which kernel consumes it depends on the machine that loads it; pith inspect tells.
absl::StatusOr<OrderedJson> StoredDataPath(const CompressionPlan& plan) {
  OrderedJson modules = OrderedJson::array();
  for (const PlannedModule& module : plan.modules) {
    if (!module.quantized) continue;
    ASSIGN_OR_RETURN(const WeightFormat* format, FindWeightFormat(module.scheme.format));
    std::vector<TensorSpec> data = module.tensors;
    std::erase_if(data, [](const TensorSpec& spec) { return absl::EndsWith(spec.name, ".weight_shape"); });
    modules.push_back({{"name", module.name},
                       {"scheme", module.scheme.name},
                       {"stored_bits", static_cast<double>(TotalBytes(data)) * 8 / static_cast<double>(module.out * module.in)},
                       {"scale_dtype", std::string(DTypeName(format->scale_dtype.value_or(plan.model_dtype)))},
                       {"group_size", module.args().columns_per_scale(module.in)},
                       {"packing", module.scheme.format}});
  }
  return modules;
}

// Everything of the artifact but its tensors.
absl::Status WriteSideFiles(const ArtifactReader& reader, const CompressionPlan& plan, ArtifactWriter& writer) {
  RETURN_IF_ERROR(writer.AddJson("config.json", WithQuantizationConfig(reader.config(), plan.config)));
  return writer.CopySideFiles(reader.path());
}

// What the manifest records of the recipe, and of the data where there are any.
OrderedJson RecipeJson(const Recipe& recipe, const CalibrationData* calibration) {
  OrderedJson json = ToJson(recipe);
  json["calibration"] = calibration == nullptr ? OrderedJson(nullptr) : ToJson(*calibration);
  return json;
}

// Whatever decides the bytes of the artifact.
absl::StatusOr<OrderedJson> RunIdentity(const std::string& fingerprint, const OrderedJson& recipe, const CompressionOptions& options) {
  ASSIGN_OR_RETURN(const Isa isa, SelectIsa());
  return OrderedJson{{"pith_version", options.pith_version},
                     {"model_fingerprint", fingerprint},
                     {"instruction_set", std::string(IsaName(isa))},
                     {"recipe", recipe}};
}

absl::Status TakeResult(StageResult result, ArtifactWriter& writer, CompressionReport& report) {
  for (const NamedTensor& entry : result.tensors) RETURN_IF_ERROR(writer.WriteTensor(entry.name, entry.tensor.view().bytes()));
  std::move(result.layers.begin(), result.layers.end(), std::back_inserter(report.layers));
  std::move(result.scaled_inputs.begin(), result.scaled_inputs.end(), std::back_inserter(report.scaled_inputs));
  if (result.block.has_value()) report.blocks.push_back(*result.block);
  return absl::OkStatus();
}

void CountWeights(const CompressionPlan& plan, CompressionReport& report) {
  for (const PlannedModule& module : plan.modules) {
    (module.quantized ? report.quantized_weights : report.kept_weights) += module.quantized ? module.out * module.in
                                                                                            : NumElements(module.tensors.front().shape);
  }
  for (const TensorSpec& spec : plan.plain_tensors) report.kept_weights += NumElements(spec.shape);
}

// What is done with a stage that is done.
using StageSink = std::function<absl::Status(StageResult)>;

// Runs the stages in order, or takes them from the checkpoint, and hands each to `sink`.
absl::Status RunStages(const ArtifactReader& reader, const Recipe& recipe, const CompressionPlan& plan, Checkpoint& checkpoint,
                       ThreadPool& pool, const CompressionOptions& options, absl::string_view phase, const StageSink& sink) {
  ASSIGN_OR_RETURN(const MethodRow* method, FindMethod(recipe.method));
  std::unique_ptr<InputScaler> scaler;
  if (method->make_scaler != nullptr) {
    ASSIGN_OR_RETURN(scaler, method->make_scaler(recipe));
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<WeightQuantizer> quantizer, method->make_quantizer(recipe));
  int64_t done = 0;
  const CompressionProgress progress = [&](int64_t modules) {
    done += modules;
    return options.progress ? options.progress(phase, done, static_cast<int64_t>(plan.modules.size())) : absl::OkStatus();
  };
  const std::vector<Stage> stages = SplitStages(plan);
  std::unique_ptr<SequentialPipeline> pipeline;
  if (options.calibration != nullptr && checkpoint.num_done() + 1 < static_cast<int64_t>(stages.size())) {  // the last is no layer
    ASSIGN_OR_RETURN(pipeline, SequentialPipeline::Create({.reader = reader,
                                                           .plan = plan,
                                                           .data = *options.calibration,
                                                           .scaler = scaler.get(),
                                                           .quantizer = *quantizer,
                                                           .pool = pool,
                                                           .file = [&](const std::string& name) { return checkpoint.File(name); }}));
    RETURN_IF_ERROR(pipeline->Begin(checkpoint.num_done()));
  }
  for (const Stage& stage : stages) {
    if (stage.layer < 0) {  // embedding and head: quick, so made again rather than kept
      ASSIGN_OR_RETURN(const std::unique_ptr<WeightQuantizer> rtn, MakeRtnQuantizer(recipe));
      ASSIGN_OR_RETURN(StageResult result, RunDataFreeStage(reader, plan, stage, *rtn, pool, progress));
      RETURN_IF_ERROR(sink(std::move(result)));
      continue;
    }
    StageResult result;
    if (stage.layer < checkpoint.num_done()) {
      ASSIGN_OR_RETURN(result, checkpoint.Load(stage.layer));
      RETURN_IF_ERROR(progress(static_cast<int64_t>(stage.modules.size())));
    } else {
      ASSIGN_OR_RETURN(result, pipeline != nullptr ? pipeline->RunStage(stage, progress)
                                                   : RunDataFreeStage(reader, plan, stage, *quantizer, pool, progress));
      RETURN_IF_ERROR(checkpoint.Save(stage.layer, result));
      if (pipeline != nullptr) pipeline->StageSaved(stage.layer);
    }
    RETURN_IF_ERROR(sink(std::move(result)));
  }
  return absl::OkStatus();
}

// Tensors of outlier columns among those of a stage.
std::vector<TensorSpec> OutlierTensors(const StageResult& result) {
  std::vector<TensorSpec> specs;
  for (const NamedTensor& entry : result.tensors) {
    const absl::string_view suffix = SplitTensorName(entry.name).second;
    if (suffix != kOutlierIndexSuffix && suffix != kOutlierWeightSuffix) continue;
    specs.push_back({entry.name, entry.tensor.dtype(), entry.tensor.shape()});
  }
  return specs;
}

}  // namespace

bool NeedsCalibration(const Recipe& recipe) {
  if (recipe.scheme.NeedsCalibration()) return true;
  for (const SchemeOverride& override : recipe.overrides) {
    if (override.scheme.NeedsCalibration()) return true;
  }
  const auto row = FindMethod(recipe.method);
  if (!row.ok()) return false;
  const auto quantizer = (*row)->make_quantizer(recipe);
  return (*row)->make_scaler != nullptr || (quantizer.ok() && (*quantizer)->needs() != StatisticsLevel::kNone);
}

absl::StatusOr<CompressionReport> Compress(const ArtifactReader& reader, const Recipe& recipe, const std::string& output, ThreadPool& pool,
                                           const CompressionOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(CompressionPlan plan, PlanCompression(reader, recipe));
  if (options.calibration == nullptr && NeedsCalibration(recipe)) {
    return UsageError("scheme ", recipe.scheme.name, ", method ", recipe.method, ": expected calibration data, found none");
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactWriter> writer, ArtifactWriter::Create(output, {.source_path = reader.path()}));
  // An artifact lays its tensors out before it is written; outlier columns are known when all layers are done.
  const bool columns_to_find = options.calibration != nullptr && FixOutliers(plan);
  if (columns_to_find) {
    RETURN_IF_ERROR(writer->CheckSpace(static_cast<uint64_t>(plan.output_bytes)));
  } else {
    RETURN_IF_ERROR(writer->DeclareTensors(PlannedTensors(plan)));
  }
  RETURN_IF_ERROR(CheckFinite(reader, plan, options));
  ASSIGN_OR_RETURN(const std::string fingerprint, reader.Fingerprint());
  const OrderedJson recipe_json = RecipeJson(recipe, options.calibration);
  ASSIGN_OR_RETURN(const OrderedJson identity, RunIdentity(fingerprint, recipe_json, options));
  ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint, Checkpoint::Open(output, identity, options.resume));
  CompressionReport report{.group_size = plan.args.group_size, .input_bytes = plan.input_bytes, .resumed_layers = checkpoint->num_done()};
  if (columns_to_find) {
    std::vector<TensorSpec> found;
    RETURN_IF_ERROR(RunStages(reader, recipe, plan, *checkpoint, pool, options, "quantizing", [&found](const StageResult& result) {
      for (TensorSpec& spec : OutlierTensors(result)) found.push_back(std::move(spec));
      return absl::OkStatus();
    }));
    AddOutlierTensors(std::move(found), plan);
    RETURN_IF_ERROR(writer->DeclareTensors(PlannedTensors(plan)));
  }
  RETURN_IF_ERROR(RunStages(reader, recipe, plan, *checkpoint, pool, options, columns_to_find ? "writing" : "quantizing",
                            [&](StageResult result) { return TakeResult(std::move(result), *writer, report); }));
  report.output_bytes = plan.output_bytes;
  CountWeights(plan, report);
  RETURN_IF_ERROR(WriteSideFiles(reader, plan, *writer));
  RETURN_IF_ERROR(writer->AddFile("report.json", DumpJson(ArtifactReport(report), 2) + "\n"));
  Manifest manifest{
      .pith_version = options.pith_version, .source_fingerprint = fingerprint, .recipe = recipe_json, .layers = ToJson(report.layers)};
  ASSIGN_OR_RETURN(manifest.data_path, StoredDataPath(plan));
  if (options.calibration != nullptr) manifest.calibration_sha256 = options.calibration->Hash();
  RETURN_IF_ERROR(writer->Commit(std::move(manifest)).status());
  checkpoint->Remove();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace pith
