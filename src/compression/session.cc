#include "compression/session.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "artifact/artifact_writer.h"
#include "artifact/module_names.h"
#include "base/file.h"
#include "base/status.h"
#include "compression/checkpoint.h"
#include "compression/finite_check.h"
#include "compression/modifier.h"
#include "compression/modifiers/rtn.h"
#include "compression/pipelines/layer_quantizer.h"
#include "compression/pipelines/sequential.h"
#include "compression/rotated_reader.h"
#include "compression/stage.h"
#include "model/decoder_config.h"
#include "quantization/formats/format_table.h"
#include "quantization/formats/outlier_columns.h"

namespace pith {
namespace {

// Looks at every weight before the first is quantized, so that a bad one is found in seconds, not after the work.
absl::Status CheckAllFinite(const ArtifactReader& reader, const CompressionPlan& plan, const CompressionOptions& options) {
  int64_t done = 0;
  for (const PlannedModule& module : plan.modules) {
    // A head that rotating sets apart is the embedding here.
    if (reader.HasWeight(module.name)) RETURN_IF_ERROR(CheckFinite(reader, module.name));
    if (options.progress) RETURN_IF_ERROR(options.progress("checking", ++done, static_cast<int64_t>(plan.modules.size())));
  }
  return absl::OkStatus();
}

Json WithQuantizationConfig(Json config, const QuantizationConfig& quantization) {
  config["quantization_config"] = ToJson(quantization);
  return config;
}

// What report.json of the artifact says: all but what differs from run to run, so that the same run gives the same bytes.
OrderedJson ArtifactReport(const CompressionReport& report) {
  OrderedJson json = {{"schema_version", 1}};
  json.update(ToJson(report, /*run=*/false));
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

// Whatever decides the bytes of the artifact, but for the content of the model.
absl::StatusOr<OrderedJson> RunIdentity(const OrderedJson& recipe, const CompressionOptions& options) {
  ASSIGN_OR_RETURN(const Isa isa, SelectIsa());
  return OrderedJson{{"pith_version", options.pith_version}, {"instruction_set", std::string(IsaName(isa))}, {"recipe", recipe}};
}

absl::Status CheckDisk(const ArtifactReader& reader, const CompressionPlan& plan, const CalibrationSize& calibration,
                       const std::string& output) {
  ASSIGN_OR_RETURN(const DecoderConfig config, ParseDecoderConfig(reader.config()));
  ASSIGN_OR_RETURN(const uint64_t free, FreeDiskBytes(output));
  return CheckDiskNeed(output, ComputeDiskNeed(plan, config.hidden_size, calibration), free + Checkpoint::BytesOf(output));
}

absl::Status TakeResult(StageResult result, ArtifactWriter& writer, CompressionReport& report) {
  for (const NamedTensor& entry : result.tensors) RETURN_IF_ERROR(writer.WriteTensor(entry.name, entry.tensor.view().bytes()));
  std::move(result.layers.begin(), result.layers.end(), std::back_inserter(report.layers));
  std::move(result.scaled_inputs.begin(), result.scaled_inputs.end(), std::back_inserter(report.scaled_inputs));
  std::move(result.kv_scales.begin(), result.kv_scales.end(), std::back_inserter(report.kv_scales));
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

// Where the results of stages go.
struct StageSink {
  std::function<absl::Status(StageResult)> take;
  // Bytes of a kept tensor outside the layers; none: what is outside the layers is not asked for.
  std::function<absl::Status(const std::string& name, absl::Span<const uint8_t> bytes)> keep;
};

// A head that the method codes, which is then no longer left in `stage`.
absl::Status RunHead(SequentialPipeline& pipeline, Stage& stage, const CompressionProgress& progress, const StageSink& sink) {
  const auto head = std::find_if(stage.modules.begin(), stage.modules.end(), [&](auto* module) { return pipeline.CodesHead(*module); });
  if (head == stage.modules.end()) return absl::OkStatus();
  ASSIGN_OR_RETURN(StageResult result, pipeline.RunHead(**head, progress));
  stage.modules.erase(head);
  return sink.take(std::move(result));
}

// What is left outside the layers: quick, so made again rather than kept, with one module in memory at a time.
absl::Status RunRest(const ArtifactReader& reader, const Recipe& recipe, const CompressionPlan& plan, const Stage& stage, ThreadPool& pool,
                     const CompressionProgress& progress, const StageSink& sink) {
  ASSIGN_OR_RETURN(const std::unique_ptr<WeightQuantizer> rtn, MakeRtnQuantizer(recipe));
  for (const PlannedModule* module : stage.modules) {
    if (module->quantized) {
      ASSIGN_OR_RETURN(StageResult result, RunDataFreeStage(reader, plan, {.modules = {module}}, *rtn, pool, progress));
      RETURN_IF_ERROR(sink.take(std::move(result)));
      continue;
    }
    ASSIGN_OR_RETURN(const Weight weight, reader.ReadWeight(module->name));
    const TensorSpec& spec = module->tensors.front();
    if (weight.dense->dtype == spec.dtype) {
      RETURN_IF_ERROR(sink.keep(spec.name, weight.dense->bytes()));
    } else {  // rotated
      StageResult rounded;
      RETURN_IF_ERROR(CopyTensor(spec, *weight.dense, rounded));
      RETURN_IF_ERROR(sink.take(std::move(rounded)));
    }
    RETURN_IF_ERROR(progress(1));
  }
  ASSIGN_OR_RETURN(StageResult plain, RunDataFreeStage(reader, plan, {.plain_tensors = stage.plain_tensors}, *rtn, pool, progress));
  return sink.take(std::move(plain));
}

// Runs the stages in order, or takes them from the checkpoint, and hands each to `sink`.
absl::Status RunStages(const ArtifactReader& reader, const Recipe& recipe, const CompressionPlan& plan, const MethodParts& method,
                       Checkpoint& checkpoint, ThreadPool& pool, const CompressionOptions& options, absl::string_view phase,
                       const StageSink& sink) {
  int64_t done = 0;
  const CompressionProgress progress = [&](int64_t modules) {
    done += modules;
    return options.progress ? options.progress(phase, done, static_cast<int64_t>(plan.modules.size())) : absl::OkStatus();
  };
  std::vector<Stage> stages = SplitStages(plan);
  const bool layers_left = checkpoint.num_done() + 1 < static_cast<int64_t>(stages.size());  // the last is no layer
  const bool head_left = sink.keep && std::any_of(stages.back().modules.begin(), stages.back().modules.end(),
                                                  [](const PlannedModule* module) { return module->quantized; });
  std::unique_ptr<SequentialPipeline> pipeline;
  if (options.calibration != nullptr && (layers_left || head_left)) {
    ASSIGN_OR_RETURN(pipeline, SequentialPipeline::Create({.reader = reader,
                                                           .plan = plan,
                                                           .data = *options.calibration,
                                                           .scaler = method.scaler.get(),
                                                           .quantizer = *method.quantizer,
                                                           .pool = pool,
                                                           .file = [&](const std::string& name) { return checkpoint.File(name); }}));
    RETURN_IF_ERROR(pipeline->Begin(checkpoint.num_done()));
  }
  for (Stage& stage : stages) {
    if (stage.layer < 0) {
      if (!sink.keep) continue;
      if (pipeline != nullptr) RETURN_IF_ERROR(RunHead(*pipeline, stage, progress, sink));
      pipeline.reset();  // with the embedding it holds
      RETURN_IF_ERROR(RunRest(reader, recipe, plan, stage, pool, progress, sink));
      continue;
    }
    StageResult result;
    if (stage.layer < checkpoint.num_done()) {
      ASSIGN_OR_RETURN(result, checkpoint.Load(stage.layer));
      RETURN_IF_ERROR(progress(static_cast<int64_t>(stage.modules.size())));
    } else {
      ASSIGN_OR_RETURN(result, pipeline != nullptr ? pipeline->RunStage(stage, progress)
                                                   : RunDataFreeStage(reader, plan, stage, *method.quantizer, pool, progress));
      RETURN_IF_ERROR(checkpoint.Save(stage.layer, result));
      if (pipeline != nullptr) pipeline->StageSaved(stage.layer);
    }
    RETURN_IF_ERROR(sink.take(std::move(result)));
    ReturnFreeMemory();  // so that no layer takes more than the first
  }
  return absl::OkStatus();
}

bool SchemesNeedCalibration(const Recipe& recipe) {
  if (recipe.kv_cache.has_value() && recipe.kv_cache->NeedsCalibration()) return true;
  return recipe.scheme.NeedsCalibration() || std::any_of(recipe.overrides.begin(), recipe.overrides.end(),
                                                         [](const auto& override) { return override.scheme.NeedsCalibration(); });
}

bool NeedsCalibration(const Recipe& recipe, const MethodParts& method) {
  return SchemesNeedCalibration(recipe) || method.scaler != nullptr || method.quantizer->needs() != StatisticsLevel::kNone;
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
  const auto method = MakeMethodParts(recipe);
  return method.ok() ? NeedsCalibration(recipe, *method) : SchemesNeedCalibration(recipe);
}

CalibrationSize SizeOf(const CalibrationData* calibration) {
  CalibrationSize size;
  if (calibration == nullptr) return size;
  int64_t number = 0;
  for (const std::vector<int32_t>& sequence : calibration->sequences) {
    const auto tokens = static_cast<int64_t>(sequence.size());
    size.tokens += tokens;
    if (number++ < kMeasuredSequences) size.measured_tokens += tokens;
  }
  return size;
}

absl::Status CheckRun(const ArtifactReader& reader, const CompressionPlan& plan, const OrderedJson& known_recipe,
                      const CalibrationSize& calibration, const std::string& output, const CompressionOptions& options) {
  RETURN_IF_ERROR(ArtifactWriter::Create(output, {.source_path = reader.path()}).status());  // nothing stays of it
  ASSIGN_OR_RETURN(OrderedJson identity, RunIdentity(known_recipe, options));
  RETURN_IF_ERROR(Checkpoint::Check(output, identity, options.resume));
  if (options.resume && Checkpoint::BytesOf(output) > 0) {  // otherwise there is nothing to compare it with
    ASSIGN_OR_RETURN(identity["model_fingerprint"], reader.Fingerprint());
    RETURN_IF_ERROR(Checkpoint::Check(output, identity, options.resume));
  }
  return CheckDisk(reader, plan, calibration, output);
}

absl::StatusOr<CompressionReport> Compress(const ArtifactReader& reader, const Recipe& recipe, const std::string& output, ThreadPool& pool,
                                           const CompressionOptions& options) {
  ResourceMeter meter;
  ASSIGN_OR_RETURN(CompressionPlan plan, PlanCompression(reader, recipe));
  ASSIGN_OR_RETURN(const MethodParts method, MakeMethodParts(recipe));
  if (options.calibration == nullptr && NeedsCalibration(recipe, method)) {
    return UsageError("scheme ", recipe.scheme.name, ", method ", recipe.method,
                      recipe.kv_cache.has_value() ? absl::StrCat(", KV cache ", recipe.kv_cache->name) : "",
                      ": expected calibration data, found none");
  }
  // An unfinished run of another kind is refused before the weights are looked at.
  const OrderedJson recipe_json = RecipeJson(recipe, options.calibration);
  ASSIGN_OR_RETURN(OrderedJson identity, RunIdentity(recipe_json, options));
  RETURN_IF_ERROR(Checkpoint::Check(output, identity, options.resume));
  ASSIGN_OR_RETURN(const std::unique_ptr<ArtifactWriter> writer, ArtifactWriter::Create(output, {.source_path = reader.path()}));
  RETURN_IF_ERROR(CheckDisk(reader, plan, SizeOf(options.calibration), output));
  // An artifact lays its tensors out before it is written; outlier columns are known when all layers are done.
  const bool columns_to_find = options.calibration != nullptr && FixOutliers(plan);
  if (!columns_to_find) RETURN_IF_ERROR(writer->DeclareTensors(PlannedTensors(plan)));
  ASSIGN_OR_RETURN(const std::string fingerprint, reader.Fingerprint());
  identity["model_fingerprint"] = fingerprint;
  ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint, Checkpoint::Open(output, identity, options.resume));
  RETURN_IF_ERROR(CheckAllFinite(reader, plan, options));
  ASSIGN_OR_RETURN(const std::unique_ptr<RotatedReader> rotated, OpenRotated(reader, recipe.rotation, pool));
  const ArtifactReader& source = rotated != nullptr ? *rotated : reader;
  CompressionReport report{.group_size = plan.args.group_size, .input_bytes = plan.input_bytes, .resumed_layers = checkpoint->num_done()};
  if (rotated != nullptr) report.rotation = RotationReport{rotated->options(), rotated->untied_head_bytes()};
  report.sensitivities = options.sensitivities;
  report.phases.push_back({"checking", meter.Lap()});
  if (columns_to_find) {
    std::vector<TensorSpec> found;
    const auto note = [&found](const StageResult& result) {
      for (TensorSpec& spec : OutlierTensors(result)) found.push_back(std::move(spec));
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(RunStages(source, recipe, plan, method, *checkpoint, pool, options, "quantizing", {.take = note}));
    AddOutlierTensors(std::move(found), plan);
    RETURN_IF_ERROR(writer->DeclareTensors(PlannedTensors(plan)));
  }
  const StageSink write = {
      .take = [&](StageResult result) { return TakeResult(std::move(result), *writer, report); },
      .keep = [&](const std::string& name, absl::Span<const uint8_t> bytes) { return writer->WriteTensor(name, bytes); }};
  RETURN_IF_ERROR(RunStages(source, recipe, plan, method, *checkpoint, pool, options, columns_to_find ? "writing" : "quantizing", write));
  report.output_bytes = plan.output_bytes;
  CountWeights(plan, report);
  RETURN_IF_ERROR(WriteSideFiles(source, plan, *writer));
  RETURN_IF_ERROR(writer->AddFile("report.json", DumpJson(ArtifactReport(report), 2) + "\n"));
  Manifest manifest{
      .pith_version = options.pith_version, .source_fingerprint = fingerprint, .recipe = recipe_json, .layers = ToJson(report.layers)};
  ASSIGN_OR_RETURN(manifest.data_path, StoredDataPath(plan));
  if (options.calibration != nullptr) manifest.calibration_sha256 = options.calibration->Hash();
  RETURN_IF_ERROR(writer->Commit(std::move(manifest)).status());
  checkpoint->Remove();
  report.phases.push_back({"quantizing", meter.Lap()});
  return report;
}

}  // namespace pith
