#include "compression/pipelines/sequential.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "compression/input_observer.h"
#include "compression/modifiers/llm_int8.h"
#include "compression/pipelines/layer_quantizer.h"
#include "quantization/formats/input_scale.h"

namespace pith {

// Statistics are null when none of the consumers is to be quantized.
struct SequentialPipeline::Observed {
  LayerInput input;
  std::unique_ptr<InputStatistics> statistics;
  std::vector<const PlannedModule*> targets;
};

namespace {

// What the input of a module becomes, from the largest magnitude of each of its channels.
std::optional<InputQuantization> ChooseInput(const QuantizationScheme& scheme, const std::vector<float>& max_abs, DType dtype) {
  if (!scheme.input_activations.has_value()) return std::nullopt;
  InputQuantization input{.args = *scheme.input_activations};
  if (!input.args.dynamic) input.static_scale = StaticInputScale(input.args, *std::max_element(max_abs.begin(), max_abs.end()), dtype);
  if (input.args.fixed_outliers) input.outlier_columns = FindOutlierColumns(max_abs, input.args.outlier_threshold);
  return input;
}

}  // namespace

SequentialPipeline::SequentialPipeline(const SequentialParts& parts, StatisticsLevel level, Isa isa, std::unique_ptr<LayerwiseModel> model)
    : parts_(parts), level_(level), isa_(isa), model_(std::move(model)), quantized_(parts.reader) {
  for (const std::vector<int32_t>& tokens : parts.data.sequences) lengths_.push_back(static_cast<int64_t>(tokens.size()));
}

absl::StatusOr<std::unique_ptr<SequentialPipeline>> SequentialPipeline::Create(const SequentialParts& parts) {
  StatisticsLevel level = std::max(parts.quantizer.needs(), StatisticsLevel::kChannels);
  if (parts.scaler != nullptr) level = std::max(level, parts.scaler->needs());
  ASSIGN_OR_RETURN(const Isa isa, SelectIsa());
  ASSIGN_OR_RETURN(auto model, LayerwiseModel::Create(parts.reader, {.pool = &parts.pool, .isa = isa, .max_tokens = parts.data.longest()}));
  return std::unique_ptr<SequentialPipeline>(new SequentialPipeline(parts, level, isa, std::move(model)));
}

int64_t SequentialPipeline::num_measured() const { return std::min<int64_t>(parts_.max_measured, static_cast<int64_t>(lengths_.size())); }

std::string SequentialPipeline::HiddenPath(int64_t layer) const { return parts_.file(absl::StrFormat("hidden-%05d.f32", layer)); }
std::string SequentialPipeline::DensePath(int64_t layer) const { return parts_.file(absl::StrFormat("dense-%05d.f32", layer)); }

absl::StatusOr<HiddenStatesReader> SequentialPipeline::OpenHidden(int64_t layer) const {
  return HiddenStatesReader::Open(HiddenPath(layer), lengths_, model_->config().hidden_size);
}

absl::StatusOr<HiddenStatesReader> SequentialPipeline::OpenDense(int64_t layer) const {
  return HiddenStatesReader::Open(DensePath(layer), absl::MakeConstSpan(lengths_).first(num_measured()), model_->config().hidden_size);
}

absl::Status SequentialPipeline::Begin(int64_t num_done) {
  reached_ = std::max(num_done, parts_.first_layer);
  if (num_done > 0) {
    RETURN_IF_ERROR(OpenHidden(num_done).status());
    return OpenDense(num_done).status();
  }
  ASSIGN_OR_RETURN(HiddenStatesWriter hidden, HiddenStatesWriter::Create(HiddenPath(parts_.first_layer)));
  ASSIGN_OR_RETURN(HiddenStatesWriter dense, HiddenStatesWriter::Create(DensePath(parts_.first_layer)));
  for (size_t i = 0; i < lengths_.size(); ++i) {
    hidden_.resize(static_cast<size_t>(lengths_[i] * model_->config().hidden_size));
    RETURN_IF_ERROR(model_->Embed(parts_.data.sequences[i], absl::MakeSpan(hidden_)));
    RETURN_IF_ERROR(hidden.Append(hidden_));
    if (static_cast<int64_t>(i) < num_measured()) RETURN_IF_ERROR(dense.Append(hidden_));
  }
  RETURN_IF_ERROR(hidden.Commit());
  return dense.Commit();
}

void SequentialPipeline::StageSaved(int64_t layer) {
  std::error_code ignored;
  std::filesystem::remove(HiddenPath(layer), ignored);
  std::filesystem::remove(DensePath(layer), ignored);
}

absl::Status SequentialPipeline::Observe(int64_t index, const DecoderLayer& layer, std::vector<Observed>& inputs,
                                         const CompressionProgress& progress) {
  ASSIGN_OR_RETURN(const HiddenStatesReader hidden, OpenHidden(index));
  InputObserver observer(parts_.pool);
  for (Observed& observed : inputs) {
    if (observed.statistics != nullptr) observer.Add(observed.input.consumers.front(), observed.statistics.get());
  }
  for (int64_t i = 0; i < hidden.num_sequences(); ++i) {
    RETURN_IF_ERROR(hidden.Read(i, hidden_));
    RETURN_IF_ERROR(model_->RunLayer(layer, lengths_[static_cast<size_t>(i)], absl::MakeSpan(hidden_), &observer));
    if (i < num_measured()) local_.push_back(hidden_);
    RETURN_IF_ERROR(progress(0));
  }
  return absl::OkStatus();
}

absl::Status SequentialPipeline::ScaleInputs(std::vector<Observed>& inputs, ScaledLayer& scaled, StageResult& result) {
  std::vector<std::vector<float>> scales(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    Observed& observed = inputs[i];
    // Codes of the consumers take up the scales, and codes of the producer their inverse; dense bf16 weights would be rounded once more.
    const bool producer_quantized = std::any_of(inputs.begin(), inputs.end(), [&](const Observed& other) {
      return std::any_of(other.targets.begin(), other.targets.end(), [&](const auto* m) { return m->name == observed.input.producer; });
    });
    if (observed.targets.size() != observed.input.consumers.size() || !(observed.input.producer_is_norm || producer_quantized)) continue;
    std::vector<Tensor> matrices;
    SharedInput shared{.name = observed.input.consumers.front(),
                       .statistics = observed.statistics.get(),
                       .args = observed.targets.front()->args(),
                       .scale_dtype = parts_.plan.model_dtype,
                       .tied_columns = observed.input.tied_columns};
    for (const PlannedModule* module : observed.targets) {
      ASSIGN_OR_RETURN(Tensor matrix, scaled.ReadMatrix(module->name));
      matrices.push_back(std::move(matrix));
      shared.weights.emplace_back(matrices.back().as<float>().data(), module->out, module->in);
    }
    ASSIGN_OR_RETURN(InputScales found, parts_.scaler->Search(shared, parts_.pool));
    result.scaled_inputs.push_back({shared.name, found.scales.empty() ? "none" : found.choice, found.error_ratio});
    scales[i] = std::move(found.scales);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (scales[i].empty()) continue;
    ASSIGN_OR_RETURN(const std::vector<float> divisors, scaled.Fold(inputs[i].input, scales[i]));
    RETURN_IF_ERROR(inputs[i].statistics->DivideChannels(divisors, parts_.pool));
  }
  return absl::OkStatus();
}

absl::Status SequentialPipeline::Copy(const TensorSpec& spec, const ScaledLayer& scaled, StageResult& result) {
  if (const auto it = scaled.changed().find(spec.name); it != scaled.changed().end()) {
    return CopyTensor(spec, it->second->view(), result);
  }
  ASSIGN_OR_RETURN(const std::optional<Weight> weight, parts_.reader.ReadTensor(spec.name));
  if (!weight.has_value()) return BadFileError(spec.name, ": expected a tensor, found none");
  return CopyTensor(spec, *weight->dense, result);
}

absl::Status SequentialPipeline::QuantizeStage(const Stage& stage, std::vector<Observed>& inputs, const ScaledLayer& scaled,
                                               const CompressionProgress& progress, StageResult& result) {
  std::map<std::string, InputStatistics*> statistics;
  for (const Observed& observed : inputs) {
    for (const PlannedModule* module : observed.targets) statistics[module->name] = observed.statistics.get();
  }
  for (const PlannedModule* module : stage.modules) {
    if (!module->quantized) {
      RETURN_IF_ERROR(Copy(module->tensors.front(), scaled, result));
      RETURN_IF_ERROR(progress(1));
      continue;
    }
    const auto it = statistics.find(module->name);
    if (it == statistics.end()) return NotSupportedError(module->name, ": expected a module whose input is observed");
    const std::optional<InputQuantization> input = ChooseInput(module->scheme, it->second->max_abs(), parts_.plan.model_dtype);
    ASSIGN_OR_RETURN(const Tensor matrix, scaled.ReadMatrix(module->name));
    ASSIGN_OR_RETURN(QuantizedTensor codes, QuantizeModule(*module, parts_.plan, {matrix.as<float>().data(), module->out, module->in},
                                                           it->second, input, parts_.quantizer, parts_.pool, result));
    codes.format = module->scheme.format;
    quantized_.SetQuantized(module->name, std::move(codes), input);
    RETURN_IF_ERROR(progress(1));
  }
  for (const TensorSpec* spec : stage.plain_tensors) RETURN_IF_ERROR(Copy(*spec, scaled, result));
  for (const auto& [name, tensor] : scaled.changed()) quantized_.SetTensor(name, tensor);
  return absl::OkStatus();
}

absl::Status SequentialPipeline::Advance(int64_t index, const DecoderLayer& dense, const DecoderLayer& quantized, LayerObserver* observer,
                                         const CompressionProgress& progress, StageResult& result) {
  ASSIGN_OR_RETURN(const HiddenStatesReader hidden, OpenHidden(index));
  ASSIGN_OR_RETURN(const HiddenStatesReader reference, OpenDense(index));
  ASSIGN_OR_RETURN(HiddenStatesWriter next_hidden, HiddenStatesWriter::Create(HiddenPath(index + 1)));
  ASSIGN_OR_RETURN(HiddenStatesWriter next_reference, HiddenStatesWriter::Create(DensePath(index + 1)));
  OutputErrorMeter local, accumulated;
  std::vector<float> expected;
  for (int64_t i = 0; i < hidden.num_sequences(); ++i) {
    const int64_t length = lengths_[static_cast<size_t>(i)];
    RETURN_IF_ERROR(hidden.Read(i, hidden_));
    RETURN_IF_ERROR(model_->RunLayer(quantized, length, absl::MakeSpan(hidden_), observer));
    RETURN_IF_ERROR(next_hidden.Append(hidden_));
    if (i < num_measured()) {
      RETURN_IF_ERROR(reference.Read(i, expected));
      RETURN_IF_ERROR(model_->RunLayer(dense, length, absl::MakeSpan(expected), nullptr));
      RETURN_IF_ERROR(next_reference.Append(expected));
      local.Add(local_[static_cast<size_t>(i)], hidden_);
      accumulated.Add(expected, hidden_);
    }
    RETURN_IF_ERROR(progress(0));
  }
  result.block = BlockReport{.layer = index, .local = local.Get(), .accumulated = accumulated.Get()};
  RETURN_IF_ERROR(next_hidden.Commit());
  RETURN_IF_ERROR(next_reference.Commit());
  reached_ = index + 1;
  return absl::OkStatus();
}

absl::Status SequentialPipeline::AddKvScales(int64_t layer, const KvRange& range, StageResult& result) {
  const QuantizationArgs& args = *parts_.plan.config.kv_cache_scheme;
  ASSIGN_OR_RETURN(KvScaleReport scales,
                   MakeKvScales(model_->weight_map().Layer(layer, "self_attn"), args, range, parts_.plan.model_dtype));
  for (NamedTensor& tensor : EncodeKvScales(scales, args, parts_.plan.model_dtype)) result.tensors.push_back(std::move(tensor));
  result.kv_scales.push_back(std::move(scales));
  return absl::OkStatus();
}

bool SequentialPipeline::CodesHead(const PlannedModule& module) const {
  const WeightMap& map = model_->weight_map();
  const bool is_head = module.name == (model_->config().tie_word_embeddings ? map.Embedding() : map.head);
  return is_head && module.quantized && module.args().type == QuantizationType::kInt;
}

absl::Status SequentialPipeline::ObserveHead(const CompressionProgress& progress) {
  const int64_t dim = model_->config().hidden_size;
  ASSIGN_OR_RETURN(const HiddenStatesReader hidden, OpenHidden(reached_));
  auto statistics = std::make_unique<InputStatistics>(dim, level_, parts_.data.num_tokens(), isa_);
  InputObserver observer(parts_.pool);
  observer.Add(model_->weight_map().head, statistics.get());
  for (int64_t i = 0; i < hidden.num_sequences(); ++i) {
    RETURN_IF_ERROR(hidden.Read(i, hidden_));
    model_->ObserveHead(hidden_, observer);
    RETURN_IF_ERROR(progress(0));
  }
  head_statistics_ = std::move(statistics);
  return absl::OkStatus();
}

absl::StatusOr<StageResult> SequentialPipeline::RunHead(const PlannedModule& module, const CompressionProgress& progress) {
  if (head_statistics_ == nullptr) {
    parts_.quantizer.BeginLayer();
    RETURN_IF_ERROR(ObserveHead(progress));
  }
  ASSIGN_OR_RETURN(const Tensor matrix, ReadMatrix(parts_.reader, module.name));
  RETURN_IF_ERROR(progress(0));
  StageResult result;
  RETURN_IF_ERROR(QuantizeModule(module, parts_.plan, {matrix.as<float>().data(), module.out, module.in}, head_statistics_.get(),
                                 std::nullopt, parts_.quantizer, parts_.pool, result)
                      .status());
  RETURN_IF_ERROR(progress(1));
  return result;
}

absl::StatusOr<StageResult> SequentialPipeline::RunStage(const Stage& stage, const CompressionProgress& progress) {
  const DecoderConfig& config = model_->config();
  // What the layer before left.
  parts_.quantizer.BeginLayer();
  quantized_.Clear();
  local_.clear();
  std::map<std::string, const PlannedModule*> targets;
  for (const PlannedModule* module : stage.modules) {
    if (module->quantized) targets.emplace(module->name, module);
  }
  std::vector<Observed> inputs;
  for (LayerInput& input : LayerInputs(config, model_->weight_map(), stage.layer)) {
    Observed observed{.input = std::move(input)};
    for (const std::string& module : observed.input.consumers) {
      if (const auto it = targets.find(module); it != targets.end()) observed.targets.push_back(it->second);
    }
    if (!observed.targets.empty()) {
      observed.statistics = std::make_unique<InputStatistics>(observed.targets.front()->in, level_, parts_.data.num_tokens(), isa_);
    }
    inputs.push_back(std::move(observed));
  }
  StageResult result;
  ASSIGN_OR_RETURN(const DecoderLayer dense, model_->LoadLayer(parts_.reader, stage.layer));
  RETURN_IF_ERROR(Observe(stage.layer, dense, inputs, progress));
  ScaledLayer scaled(parts_.reader, config.norm_weight_plus_one);
  if (parts_.scaler != nullptr) RETURN_IF_ERROR(ScaleInputs(inputs, scaled, result));
  RETURN_IF_ERROR(QuantizeStage(stage, inputs, scaled, progress, result));
  ASSIGN_OR_RETURN(const DecoderLayer quantized, model_->LoadLayer(quantized_, stage.layer));
  KvRange range(config);
  const bool with_scales = !parts_.plan.kv_scales.empty();
  RETURN_IF_ERROR(Advance(stage.layer, dense, quantized, with_scales ? &range : nullptr, progress, result));
  if (with_scales) RETURN_IF_ERROR(AddKvScales(stage.layer, range, result));
  return result;
}

}  // namespace pith
