#include "compression/bit_budget.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/cpu_features.h"
#include "base/status.h"
#include "compression/bit_allocation.h"
#include "compression/overlay_reader.h"
#include "compression/rotated_reader.h"
#include "compression/scaled_layer.h"
#include "compression/stage.h"
#include "model/layerwise_model.h"
#include "quantization/formats/format_table.h"
#include "quantization/fused_modules.h"
#include "quantization/quantize_weight.h"
#include "quantization/reference.h"

namespace pith {
namespace {

// A module rounded to nearest, and the squared error of its weights.
struct RoundedModule {
  QuantizedTensor codes;
  double squared_error = 0;
};

absl::StatusOr<RoundedModule> Round(const ArtifactReader& reader, const PlannedModule& module, const QuantizationArgs& args,
                                    ThreadPool& pool) {
  ASSIGN_OR_RETURN(const Tensor matrix, ReadMatrix(reader, module.name));
  const MatrixView<const float> view(matrix.as<float>().data(), module.out, module.in);
  RoundedModule rounded;
  ASSIGN_OR_RETURN(rounded.codes, QuantizeWeight(view, args, DType::kBF16, ClipSearch{}, pool));
  double norm = 0;
  for (const float value : matrix.as<float>()) norm += static_cast<double>(value) * value;
  const double relative = CompareWeights(view, rounded.codes).relative_error;
  rounded.squared_error = relative * relative * norm;
  return rounded;
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
  absl::StatusOr<SetLoss> Measure(const ModuleSet& set);

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

absl::StatusOr<SetLoss> SensitivityMeter::Measure(const ModuleSet& set) {
  overlay_.Clear();
  SetLoss loss;
  for (const PlannedModule* module : set.modules) {
    ASSIGN_OR_RETURN(RoundedModule rounded, Round(reader_, *module, module->args(), pool_));
    loss.squared_error += rounded.squared_error;
    rounded.codes.format = module->scheme.format;
    overlay_.SetQuantized(module->name, std::move(rounded.codes), std::nullopt);
  }
  ASSIGN_OR_RETURN(const DecoderLayer quantized, model_.LoadLayer(overlay_, set.layer));
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
    for (size_t i = 0; i < found.size(); ++i) loss.kl += std::exp(static_cast<double>(expected[i])) * (expected[i] - found[i]);
    positions += static_cast<int64_t>(found.size()) / vocab;
  }
  loss.kl = std::max(loss.kl / static_cast<double>(positions), 0.0);
  return loss;
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
      const auto [it, added] = parts.emplace(FusedModuleName(module->name), sets.size());
      if (added) sets.push_back({.layer = stage.layer});
      sets[it->second].modules.push_back(module);
    }
  }
  return sets;
}

absl::StatusOr<std::vector<SetLoss>> MeasureSensitivities(const ArtifactReader& reader, const std::vector<ModuleSet>& sets,
                                                          const CalibrationData& data, const BitBudgetOptions& options, ThreadPool& pool,
                                                          const std::function<absl::Status(int64_t, int64_t)>& progress) {
  ASSIGN_OR_RETURN(const Isa isa, SelectIsa());
  ASSIGN_OR_RETURN(
      const auto model,
      LayerwiseModel::Create(reader,
                             {.pool = &pool, .isa = isa, .max_tokens = std::max<int64_t>(options.sequence_length, 1), .with_head = true}));
  SensitivityMeter meter(reader, options, *model, pool);
  RETURN_IF_ERROR(meter.RunDense(data));
  std::vector<SetLoss> losses;
  for (const ModuleSet& set : sets) {
    ASSIGN_OR_RETURN(const SetLoss loss, meter.Measure(set));
    losses.push_back(loss);
    if (progress) RETURN_IF_ERROR(progress(static_cast<int64_t>(losses.size()), static_cast<int64_t>(sets.size())));
  }
  return losses;
}

namespace {

// A set with what it could be stored in.
struct Candidates {
  AllocationItem item;
  std::vector<QuantizationScheme> schemes;  // of the item's options
};

// `loss` is that of the first scheme, the set's own.
absl::StatusOr<Candidates> ListCandidates(const ArtifactReader& reader, const ModuleSet& set, const SetLoss& loss, ThreadPool& pool) {
  Candidates candidates{.item = {.name = set.modules.front()->name}};
  ASSIGN_OR_RETURN(candidates.schemes, SchemesFor(set));
  for (size_t c = 0; c < candidates.schemes.size(); ++c) {
    const QuantizationScheme& scheme = candidates.schemes[c];
    double error = c == 0 ? loss.squared_error : 0.0;
    AllocationOption option{.scheme = static_cast<int>(c)};
    for (const PlannedModule* module : set.modules) {
      option.bytes += BytesOf(*module, scheme);
      if (c == 0) continue;
      ASSIGN_OR_RETURN(const RoundedModule rounded, Round(reader, *module, *scheme.weights, pool));
      error += rounded.squared_error;
    }
    option.loss = loss.squared_error > 0 ? loss.kl * error / loss.squared_error : 0.0;
    candidates.item.options.push_back(option);
  }
  return candidates;
}

// The modules of the set, its own loss and what was chosen.
SensitivityReport Describe(const ModuleSet& set, const SetLoss& loss, const Candidates& candidates, const AllocationOption& chosen) {
  SensitivityReport report{.kl = loss.kl, .expected_kl = chosen.loss, .bytes = chosen.bytes};
  for (const PlannedModule* module : set.modules) report.modules.push_back(module->name);
  const QuantizationScheme& scheme = candidates.schemes[static_cast<size_t>(chosen.scheme)];
  report.scheme = scheme.name;
  report.group_size = scheme.weights->group_size;
  return report;
}

absl::Status CheckBudgetScheme(const Recipe& recipe) {
  const QuantizationArgs& own = *recipe.scheme.weights;
  if (!recipe.scheme.input_activations.has_value() && own.num_bits <= 4 && own.type == QuantizationType::kInt) return absl::OkStatus();
  return NotSupportedError("--bits-per-weight: expected a scheme of 4-bit weights and 16-bit activations, found ", recipe.scheme.name);
}

}  // namespace

absl::StatusOr<AllocatedRecipe> AllocateRecipe(const ArtifactReader& reader, const Recipe& recipe, double bits_per_weight,
                                               const CalibrationData& data, const BitBudgetOptions& options, ThreadPool& pool,
                                               const std::function<absl::Status(int64_t, int64_t)>& progress) {
  RETURN_IF_ERROR(CheckBudgetScheme(recipe));
  ASSIGN_OR_RETURN(const CompressionPlan plan, PlanCompression(reader, recipe));
  ASSIGN_OR_RETURN(const std::unique_ptr<RotatedReader> rotated, OpenRotated(reader, recipe.rotation, pool));
  const ArtifactReader& source = rotated != nullptr ? *rotated : reader;
  std::vector<ModuleSet> sets = ModuleSets(plan);
  std::erase_if(sets, [&](const ModuleSet& set) { return set.modules.front()->scheme.name != recipe.scheme.name; });
  int64_t weights = 0;
  for (const ModuleSet& set : sets) {
    for (const PlannedModule* module : set.modules) weights += module->out * module->in;
  }
  ASSIGN_OR_RETURN(const std::vector<SetLoss> losses, MeasureSensitivities(source, sets, data, options, pool, progress));
  std::vector<AllocationItem> items;
  std::vector<Candidates> candidates;
  for (size_t i = 0; i < sets.size(); ++i) {
    ASSIGN_OR_RETURN(Candidates found, ListCandidates(source, sets[i], losses[i], pool));
    items.push_back(found.item);
    candidates.push_back(std::move(found));
  }
  const auto budget = static_cast<int64_t>(bits_per_weight * static_cast<double>(weights) / 8);
  const auto allocation = AllocateBits(items, budget);
  if (!allocation.ok()) return Annotate(allocation.status(), absl::StrCat("--bits-per-weight ", bits_per_weight));
  AllocatedRecipe result{.recipe = recipe};
  std::map<std::pair<std::string, int>, SchemeOverride> overrides;
  for (size_t i = 0; i < sets.size(); ++i) {
    const AllocationOption& chosen = items[i].options[static_cast<size_t>(allocation->choice[i])];
    result.sensitivities.push_back(Describe(sets[i], losses[i], candidates[i], chosen));
    if (chosen.scheme == 0) continue;
    const QuantizationScheme& scheme = candidates[i].schemes[static_cast<size_t>(chosen.scheme)];
    SchemeOverride& override = overrides[{scheme.name, scheme.weights->group_size}];
    ASSIGN_OR_RETURN(override.scheme, FindScheme(scheme.name));
    override.strategy = scheme.weights->strategy;
    override.group_size = scheme.weights->group_size;
    for (const PlannedModule* module : sets[i].modules) override.targets.push_back(module->name);
  }
  for (auto& [key, override] : overrides) result.recipe.overrides.push_back(std::move(override));
  return result;
}

}  // namespace pith
