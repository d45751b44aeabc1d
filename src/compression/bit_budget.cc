#include "compression/bit_budget.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/cpu_features.h"
#include "base/status.h"
#include "compression/bit_allocation.h"
#include "compression/overlay_reader.h"
#include "compression/stage.h"
#include "model/layerwise_model.h"
#include "quantization/formats/format_table.h"
#include "quantization/quantize_weight.h"
#include "quantization/reference.h"

namespace pith {
namespace {

// The part of a layer that a module belongs to: modules of one part share a scheme.
std::string PartOf(const std::string& module) {
  for (const char* suffix : {"q_proj", "k_proj", "v_proj"}) {
    if (module.ends_with(suffix)) return "qkv";
  }
  if (module.ends_with("gate_proj") || module.ends_with("up_proj")) return "gate_up";
  return module;
}

absl::StatusOr<Tensor> ReadMatrix(const ArtifactReader& reader, const PlannedModule& module) {
  ASSIGN_OR_RETURN(const Weight weight, reader.ReadWeight(module.name));
  Tensor matrix(DType::kF32, {module.out, module.in});
  RETURN_IF_ERROR(ConvertToFloat(*weight.dense, matrix.as<float>()));
  return matrix;
}

absl::StatusOr<QuantizedTensor> Quantize(const ArtifactReader& reader, const PlannedModule& module, const QuantizationArgs& args,
                                         ThreadPool& pool) {
  ASSIGN_OR_RETURN(const Tensor matrix, ReadMatrix(reader, module));
  return QuantizeWeight({matrix.as<float>().data(), module.out, module.in}, args, DType::kBF16, ClipSearch{}, pool);
}

// log softmax in place.
void ToLogProbabilities(absl::Span<float> row) {
  const float largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float value : row) sum += std::exp(static_cast<double>(value) - largest);
  const auto shift = static_cast<float>(largest + std::log(sum));
  for (float& value : row) value -= shift;
}

// Runs the tail of a model from a layer on, and compares what comes out with the dense model.
class SensitivityMeter {
 public:
  SensitivityMeter(const ArtifactReader& reader, const BitBudgetOptions& options, LayerwiseModel& model, ThreadPool& pool)
      : reader_(reader), options_(options), model_(model), pool_(pool), overlay_(reader) {}

  absl::Status RunDense(const CalibrationData& data);
  absl::StatusOr<double> Measure(const ModuleSet& set);

 private:
  int64_t hidden_size() const { return model_.config().hidden_size; }
  // Log probabilities [compared positions, vocab_size] of the last layer's output of one sequence.
  std::vector<float> Compare(const std::vector<float>& hidden);

  const ArtifactReader& reader_;
  const BitBudgetOptions& options_;
  LayerwiseModel& model_;
  ThreadPool& pool_;
  OverlayReader overlay_;
  std::vector<DecoderLayer> layers_;
  std::vector<std::vector<std::vector<float>>> inputs_;  // [layer][sequence]: [tokens, hidden_size]
  std::vector<std::vector<float>> expected_;             // [sequence]: log probabilities
};

std::vector<float> SensitivityMeter::Compare(const std::vector<float>& hidden) {
  const int64_t rows = static_cast<int64_t>(hidden.size()) / hidden_size(), vocab = model_.config().vocab_size;
  std::vector<float> chosen;
  for (int64_t r = options_.position_stride - 1; r < rows; r += options_.position_stride) {
    chosen.insert(chosen.end(), hidden.begin() + r * hidden_size(), hidden.begin() + (r + 1) * hidden_size());
  }
  const int64_t count = static_cast<int64_t>(chosen.size()) / hidden_size();
  std::vector<float> logits(static_cast<size_t>(count * vocab));
  model_.Logits(chosen, absl::MakeSpan(logits));
  pool_.ParallelFor(count, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) ToLogProbabilities(absl::MakeSpan(logits).subspan(r * vocab, vocab));
  });
  return logits;
}

absl::Status SensitivityMeter::RunDense(const CalibrationData& data) {
  std::vector<std::vector<float>> hidden;
  for (const std::vector<int32_t>& tokens : data.sequences) {
    const auto length = static_cast<size_t>(std::min<int64_t>(options_.sequence_length, static_cast<int64_t>(tokens.size())));
    if (static_cast<int64_t>(hidden.size()) == options_.num_sequences) break;
    if (static_cast<int64_t>(length) < options_.position_stride) continue;
    hidden.emplace_back(length * static_cast<size_t>(hidden_size()));
    RETURN_IF_ERROR(model_.Embed(absl::MakeConstSpan(tokens).first(length), absl::MakeSpan(hidden.back())));
  }
  if (hidden.empty()) {
    return UsageError("calibration data: expected a sample of at least ", options_.position_stride, " tokens, found none");
  }
  for (int64_t i = 0; i < model_.config().num_layers; ++i) {
    inputs_.push_back(hidden);
    ASSIGN_OR_RETURN(DecoderLayer layer, model_.LoadLayer(reader_, i));
    layers_.push_back(std::move(layer));
    for (std::vector<float>& sequence : hidden) {
      RETURN_IF_ERROR(
          model_.RunLayer(layers_.back(), static_cast<int64_t>(sequence.size()) / hidden_size(), absl::MakeSpan(sequence), nullptr));
    }
  }
  for (const std::vector<float>& sequence : hidden) expected_.push_back(Compare(sequence));
  return absl::OkStatus();
}

absl::StatusOr<double> SensitivityMeter::Measure(const ModuleSet& set) {
  overlay_.Clear();
  for (const PlannedModule* module : set.modules) {
    ASSIGN_OR_RETURN(QuantizedTensor codes, Quantize(reader_, *module, module->args(), pool_));
    codes.format = module->scheme.format;
    overlay_.SetQuantized(module->name, std::move(codes), std::nullopt);
  }
  ASSIGN_OR_RETURN(const DecoderLayer quantized, model_.LoadLayer(overlay_, set.layer));
  double kl = 0;
  int64_t positions = 0;
  const int64_t vocab = model_.config().vocab_size;
  for (size_t s = 0; s < expected_.size(); ++s) {
    std::vector<float> hidden = inputs_[static_cast<size_t>(set.layer)][s];
    const int64_t tokens = static_cast<int64_t>(hidden.size()) / hidden_size();
    RETURN_IF_ERROR(model_.RunLayer(quantized, tokens, absl::MakeSpan(hidden), nullptr));
    for (size_t i = static_cast<size_t>(set.layer) + 1; i < layers_.size(); ++i) {
      RETURN_IF_ERROR(model_.RunLayer(layers_[i], tokens, absl::MakeSpan(hidden), nullptr));
    }
    const std::vector<float> found = Compare(hidden);
    const std::vector<float>& expected = expected_[s];
    for (size_t i = 0; i < found.size(); ++i) kl += std::exp(static_cast<double>(expected[i])) * (expected[i] - found[i]);
    positions += static_cast<int64_t>(found.size()) / vocab;
  }
  return std::max(kl / static_cast<double>(positions), 0.0);
}

// What a set could be stored in.
struct Choice {
  std::string scheme;
  int group_size;  // 0: per channel
};

int64_t BytesOf(const PlannedModule& module, const QuantizationScheme& scheme) {
  int64_t bytes = 0;
  const auto specs = PlanWeight(scheme.format, *scheme.weights, {module.out, module.in}, DType::kBF16);
  for (const StoredTensorSpec& spec : *specs) bytes += NumElements(spec.shape) * ByteSize(spec.dtype);
  return bytes;
}

// Sum over a set of squared errors of its weights.
absl::StatusOr<double> SquaredError(const ArtifactReader& reader, const ModuleSet& set, const QuantizationArgs& args, ThreadPool& pool) {
  double sum = 0;
  for (const PlannedModule* module : set.modules) {
    ASSIGN_OR_RETURN(const Tensor matrix, ReadMatrix(reader, *module));
    const MatrixView<const float> view(matrix.as<float>().data(), module->out, module->in);
    ASSIGN_OR_RETURN(const QuantizedTensor codes, QuantizeWeight(view, args, DType::kBF16, ClipSearch{}, pool));
    double norm = 0;
    for (const float value : matrix.as<float>()) norm += static_cast<double>(value) * value;
    const double relative = CompareWeights(view, codes).relative_error;
    sum += relative * relative * norm;
  }
  return sum;
}

absl::StatusOr<QuantizationScheme> SchemeOf(const Choice& choice) {
  ASSIGN_OR_RETURN(const QuantizationScheme preset, FindScheme(choice.scheme));
  return choice.group_size == 0 ? WithStrategy(preset, QuantizationStrategy::kChannel, 0)
                                : WithStrategy(preset, QuantizationStrategy::kGroup, choice.group_size);
}

// The recipe's own scheme first, then what is worth more bytes and divides the set's rows.
absl::StatusOr<std::vector<QuantizationScheme>> SchemesFor(const ModuleSet& set) {
  const QuantizationScheme& own = set.modules.front()->scheme;
  std::vector<QuantizationScheme> schemes = {own};
  const auto divides = [&](int size) {
    return std::all_of(set.modules.begin(), set.modules.end(), [&](auto* m) { return m->in % size == 0; });
  };
  if (own.weights->columns_per_scale(set.modules.front()->in) > 32 && divides(32)) {
    ASSIGN_OR_RETURN(QuantizationScheme finer, SchemeOf({own.name, 32}));
    schemes.push_back(std::move(finer));
  }
  ASSIGN_OR_RETURN(QuantizationScheme eight, SchemeOf({"W8A16", 0}));
  schemes.push_back(std::move(eight));
  return schemes;
}

}  // namespace

std::vector<ModuleSet> ModuleSets(const CompressionPlan& plan) {
  std::vector<ModuleSet> sets;
  for (const Stage& stage : SplitStages(plan)) {
    if (stage.layer < 0) continue;
    std::map<std::string, size_t> parts;
    for (const PlannedModule* module : stage.modules) {
      if (!module->quantized) continue;
      const auto [it, added] = parts.emplace(PartOf(module->name), sets.size());
      if (added) sets.push_back({.layer = stage.layer});
      sets[it->second].modules.push_back(module);
    }
  }
  return sets;
}

absl::StatusOr<std::vector<double>> MeasureSensitivities(const ArtifactReader& reader, const std::vector<ModuleSet>& sets,
                                                         const CalibrationData& data, const BitBudgetOptions& options, ThreadPool& pool,
                                                         const std::function<absl::Status(int64_t, int64_t)>& progress) {
  ASSIGN_OR_RETURN(const Isa isa, SelectIsa());
  ASSIGN_OR_RETURN(
      const auto model,
      LayerwiseModel::Create(reader,
                             {.pool = &pool, .isa = isa, .max_tokens = std::max<int64_t>(options.sequence_length, 1), .with_head = true}));
  SensitivityMeter meter(reader, options, *model, pool);
  RETURN_IF_ERROR(meter.RunDense(data));
  std::vector<double> losses;
  for (const ModuleSet& set : sets) {
    ASSIGN_OR_RETURN(const double loss, meter.Measure(set));
    losses.push_back(loss);
    if (progress) RETURN_IF_ERROR(progress(static_cast<int64_t>(losses.size()), static_cast<int64_t>(sets.size())));
  }
  return losses;
}

absl::StatusOr<Recipe> AllocateRecipe(const ArtifactReader& reader, const Recipe& recipe, double bits_per_weight,
                                      const CalibrationData& data, const BitBudgetOptions& options, ThreadPool& pool,
                                      const std::function<absl::Status(int64_t, int64_t)>& progress) {
  const QuantizationArgs& own = *recipe.scheme.weights;
  if (recipe.scheme.input_activations.has_value() || own.num_bits > 4 || own.type != QuantizationType::kInt) {
    return NotSupportedError("--bits-per-weight: expected a scheme of 4-bit weights and 16-bit activations, found ", recipe.scheme.name);
  }
  ASSIGN_OR_RETURN(const CompressionPlan plan, PlanCompression(reader, recipe));
  std::vector<ModuleSet> sets = ModuleSets(plan);
  std::erase_if(sets, [&](const ModuleSet& set) { return set.modules.front()->scheme.name != recipe.scheme.name; });
  int64_t weights = 0;
  for (const ModuleSet& set : sets) {
    for (const PlannedModule* module : set.modules) weights += module->out * module->in;
  }
  ASSIGN_OR_RETURN(const std::vector<double> losses, MeasureSensitivities(reader, sets, data, options, pool, progress));
  std::vector<AllocationItem> items;
  std::vector<std::vector<QuantizationScheme>> schemes;
  for (size_t i = 0; i < sets.size(); ++i) {
    ASSIGN_OR_RETURN(std::vector<QuantizationScheme> candidates, SchemesFor(sets[i]));
    AllocationItem item{.name = sets[i].modules.front()->name};
    double own_error = 0;
    for (size_t c = 0; c < candidates.size(); ++c) {
      ASSIGN_OR_RETURN(const double error, SquaredError(reader, sets[i], *candidates[c].weights, pool));
      if (c == 0) own_error = error;
      AllocationOption option{.scheme = static_cast<int>(c), .loss = own_error > 0 ? losses[i] * error / own_error : 0.0};
      for (const PlannedModule* module : sets[i].modules) option.bytes += BytesOf(*module, candidates[c]);
      item.options.push_back(option);
    }
    items.push_back(std::move(item));
    schemes.push_back(std::move(candidates));
  }
  const auto budget = static_cast<int64_t>(bits_per_weight * static_cast<double>(weights) / 8);
  const auto allocation = AllocateBits(items, budget);
  if (!allocation.ok()) return Annotate(allocation.status(), absl::StrCat("--bits-per-weight ", bits_per_weight));
  Recipe result = recipe;
  std::map<std::pair<std::string, int>, SchemeOverride> overrides;
  for (size_t i = 0; i < sets.size(); ++i) {
    const int choice = items[i].options[static_cast<size_t>(allocation->choice[i])].scheme;
    if (choice == 0) continue;
    const QuantizationScheme& scheme = schemes[i][static_cast<size_t>(choice)];
    SchemeOverride& override = overrides[{scheme.name, scheme.weights->group_size}];
    ASSIGN_OR_RETURN(override.scheme, FindScheme(scheme.name));
    override.strategy = scheme.weights->strategy;
    override.group_size = scheme.weights->group_size;
    for (const PlannedModule* module : sets[i].modules) override.targets.push_back(module->name);
  }
  for (auto& [key, override] : overrides) result.overrides.push_back(std::move(override));
  return result;
}

}  // namespace pith
