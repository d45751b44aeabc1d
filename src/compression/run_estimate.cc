#include "compression/run_estimate.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/resource_use.h"
#include "base/sha256.h"
#include "base/status.h"
#include "compression/blas.h"
#include "compression/checkpoint.h"
#include "compression/finite_check.h"
#include "compression/modifier.h"
#include "compression/modifiers/rtn.h"
#include "compression/pipelines/layer_quantizer.h"
#include "compression/pipelines/sequential.h"
#include "compression/scaled_layer.h"
#include "compression/stage.h"
#include "model/decoder_config.h"

namespace pith {
namespace {

constexpr int64_t kProbeSequences = 10, kProbeMeasured = 4;  // the latter with the dense layer beside the quantized one
constexpr size_t kProbeStages = 4;                           // without data, when a layer is done in milliseconds
constexpr int64_t kSliceWeights = int64_t{1} << 22;          // of the embedding or head
constexpr char kProbeSuffix[] = ".dry-run";

struct Cost {
  double seconds = 0, cpu_seconds = 0;
};
Cost operator+(const Cost& a, const Cost& b) { return {a.seconds + b.seconds, a.cpu_seconds + b.cpu_seconds}; }
Cost operator-(const Cost& a, const Cost& b) { return {a.seconds - b.seconds, a.cpu_seconds - b.cpu_seconds}; }
Cost operator*(double factor, const Cost& cost) { return {factor * cost.seconds, factor * cost.cpu_seconds}; }

Cost Now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return {std::chrono::duration<double>(now).count(), ProcessCpuSeconds()};
}

Cost Mean(const std::vector<Cost>& costs) {
  Cost sum;
  for (const Cost& cost : costs) sum = sum + cost;
  return costs.empty() ? sum : (1.0 / static_cast<double>(costs.size())) * sum;
}

Cost AtLeastZero(const Cost& cost) { return {std::max(cost.seconds, 0.0), std::max(cost.cpu_seconds, 0.0)}; }

int64_t QuantizedWeights(const Stage& stage) {
  int64_t weights = 0;
  for (const PlannedModule* module : stage.modules) weights += module->quantized ? module->out * module->in : 0;
  return weights;
}

int64_t AllWeights(const CompressionPlan& plan) {
  int64_t weights = 0;
  for (const PlannedModule& module : plan.modules) {
    weights += module.quantized ? module.out * module.in : NumElements(module.tensors.front().shape);
  }
  return weights;
}

// The longest sequence, whose buffers decide the memory, then others spread over the data; all of them where they are few.
CalibrationData ProbeData(const CalibrationData& data) {
  const auto count = static_cast<int64_t>(data.sequences.size());
  if (count <= kProbeSequences) return data;
  CalibrationData probe{.options = data.options};
  const auto longest = std::max_element(data.sequences.begin(), data.sequences.end(),
                                        [](const auto& a, const auto& b) { return a.size() < b.size(); });
  probe.sequences.push_back(*longest);
  for (int64_t i = 1; i < kProbeSequences; ++i) {
    probe.sequences.push_back(data.sequences[static_cast<size_t>(i * (count - 1) / (kProbeSequences - 1))]);
  }
  return probe;
}

// Tokens of the first `count` sequences.
int64_t TokensOf(const CalibrationData& data, int64_t count) {
  int64_t tokens = 0;
  for (int64_t i = 0; i < std::min(count, static_cast<int64_t>(data.sequences.size())); ++i) {
    tokens += static_cast<int64_t>(data.sequences[static_cast<size_t>(i)].size());
  }
  return tokens;
}

// What a decoder layer costs: once, and per token of the three kinds of passes over the data.
struct LayerCost {
  Cost once, observe, advance_measured, advance;
};

// Sorts the time of a stage by what was done in it, from the moments of its calls for progress: one behind each sequence that is observed,
// one behind each module, and one behind each sequence that goes through the quantized layer.
class StageClock {
 public:
  void Begin() {
    marks_.clear();
    modules_ = 0;
    begin_ = Now();
  }
  void Mark(int64_t modules) {
    marks_.push_back(Now());
    modules_ += modules;
  }
  void End() { end_ = Now(); }
  Cost Whole() const { return end_ - begin_; }

  LayerCost Split(const CalibrationData& probe) const {
    const auto count = static_cast<int64_t>(probe.sequences.size());
    const int64_t advance = count + modules_;  // the first mark of the passes through the quantized layer
    if (static_cast<int64_t>(marks_.size()) != advance + count || count <= kProbeMeasured + 1) return {.once = Whole()};
    std::vector<Cost> observed, measured, advanced;
    const auto per_token = [&](int64_t mark, int64_t sequence) {
      return (1.0 / static_cast<double>(probe.sequences[static_cast<size_t>(sequence)].size())) * (marks_[mark] - marks_[mark - 1]);
    };
    for (int64_t i = 1; i < count; ++i) {
      observed.push_back(per_token(i, i));
      (i < kProbeMeasured ? measured : advanced).push_back(per_token(advance + i, i));
    }
    LayerCost cost{.observe = Mean(observed), .advance_measured = Mean(measured), .advance = Mean(advanced)};
    const auto first = static_cast<double>(probe.sequences.front().size());
    cost.once = AtLeastZero((marks_[0] - begin_) - first * cost.observe) +
                AtLeastZero((marks_[advance] - marks_[count - 1]) - first * cost.advance_measured) + (end_ - marks_.back());
    return cost;
  }

 private:
  Cost begin_, end_;
  std::vector<Cost> marks_;
  int64_t modules_ = 0;
};

class RunProbe {
 public:
  RunProbe(const ArtifactReader& reader, const Recipe& recipe, const CompressionPlan& plan, const CalibrationData* calibration,
           ThreadPool& pool, const std::function<absl::Status(int64_t, int64_t)>& progress)
      : reader_(reader),
        recipe_(recipe),
        plan_(plan),
        calibration_(calibration),
        pool_(pool),
        progress_(progress),
        stages_(SplitStages(plan)) {}

  absl::StatusOr<std::vector<PhaseUse>> Run(const std::string& output);

 private:
  absl::Status Step() { return progress_ ? progress_(std::min(++steps_, total_steps_), total_steps_) : absl::OkStatus(); }
  int64_t CountSteps() const;
  const Stage& Heaviest() const {
    return *std::max_element(stages_.begin(), stages_.end(), [](const Stage& a, const Stage& b) {
      return (a.layer < 0 ? -1 : QuantizedWeights(a)) < (b.layer < 0 ? -1 : QuantizedWeights(b));
    });
  }
  // Those that are tried without data: some that are as heavy as the heaviest.
  std::vector<const Stage*> HeavyStages() const;
  absl::Status ProbeChecks();
  absl::Status ProbeLayersWithData(Checkpoint& checkpoint);
  absl::Status ProbeLayersWithoutData(Checkpoint& checkpoint);
  absl::Status ProbeRest();

  const ArtifactReader& reader_;
  const Recipe& recipe_;
  const CompressionPlan& plan_;
  const CalibrationData* calibration_;
  ThreadPool& pool_;
  const std::function<absl::Status(int64_t, int64_t)>& progress_;
  const std::vector<Stage> stages_;
  ResourceMeter meter_;
  Cost checking_, quantizing_;
  Cost hash_;  // per byte
  int64_t checking_peak_ = 0, quantizing_peak_ = 0;
  int64_t steps_ = 0, total_steps_ = 1;
};

std::vector<const Stage*> RunProbe::HeavyStages() const {
  std::vector<const Stage*> heaviest;
  for (const Stage& stage : stages_) {
    if (stage.layer >= 0 && QuantizedWeights(stage) == QuantizedWeights(Heaviest())) heaviest.push_back(&stage);
  }
  heaviest.resize(std::min(heaviest.size(), kProbeStages));
  return heaviest;
}

int64_t RunProbe::CountSteps() const {
  int64_t steps = 1;
  for (const PlannedModule* module : stages_.back().modules) steps += module->quantized ? 1 : 0;
  if (calibration_ != nullptr) {
    return steps + static_cast<int64_t>(2 * ProbeData(*calibration_).sequences.size() + Heaviest().modules.size());
  }
  for (const Stage* stage : HeavyStages()) steps += static_cast<int64_t>(stage->modules.size());
  return steps;
}

// Looks at the weights of one layer and hashes them.
absl::Status RunProbe::ProbeChecks() {
  meter_.Lap();
  int64_t weights = 0, bytes = 0;
  Cost start = Now();
  for (const PlannedModule* module : Heaviest().modules) {
    RETURN_IF_ERROR(CheckFinite(reader_, module->name));
    weights += module->quantized ? module->out * module->in : NumElements(module->tensors.front().shape);
  }
  const Cost check = Now() - start;
  start = Now();
  Sha256 hash;
  for (const PlannedModule* module : Heaviest().modules) {
    const absl::StatusOr<Weight> weight = reader_.ReadWeight(module->name);
    RETURN_IF_ERROR(weight.status());
    const absl::Span<const uint8_t> content = weight->dense->bytes();
    hash.Update({reinterpret_cast<const char*>(content.data()), content.size()});
    bytes += static_cast<int64_t>(content.size());
  }
  hash_ = (1.0 / static_cast<double>(std::max<int64_t>(bytes, 1))) * (Now() - start);
  checking_ = (static_cast<double>(AllWeights(plan_)) / static_cast<double>(std::max<int64_t>(weights, 1))) * check +
              static_cast<double>(plan_.input_bytes) * hash_;
  checking_peak_ = meter_.Lap().peak_memory_bytes;
  return Step();
}

absl::Status RunProbe::ProbeLayersWithData(Checkpoint& checkpoint) {
  ASSIGN_OR_RETURN(const MethodParts method, MakeMethodParts(recipe_));
  ASSIGN_OR_RETURN(const DecoderConfig config, ParseDecoderConfig(reader_.config()));
  float one = 1.0f, product = 0.0f;
  Multiply(1.0f, {&one, 1, 1}, Transpose::kNo, {&one, 1, 1}, Transpose::kNo, 0.0f, {&product, 1, 1});  // loads the library
  const Stage& stage = Heaviest();
  const CalibrationData probe = ProbeData(*calibration_);
  const bool whole = probe.sequences.size() == calibration_->sequences.size();
  const SequentialParts parts{.reader = reader_,
                              .plan = plan_,
                              .data = probe,
                              .scaler = method.scaler.get(),
                              .quantizer = *method.quantizer,
                              .pool = pool_,
                              .file = [&](const std::string& name) { return checkpoint.File(name); },
                              .max_measured = whole ? kMeasuredSequences : kProbeMeasured,
                              .first_layer = stage.layer};
  const Cost start = Now();
  ASSIGN_OR_RETURN(const auto pipeline, SequentialPipeline::Create(parts));
  const Cost created = Now();
  RETURN_IF_ERROR(pipeline->Begin(0));
  const auto tokens = static_cast<double>(calibration_->num_tokens());
  quantizing_ = (created - start) + (tokens / static_cast<double>(probe.num_tokens())) * (Now() - created);
  StageClock clock;
  clock.Begin();
  ASSIGN_OR_RETURN(const StageResult result, pipeline->RunStage(stage, [&](int64_t modules) {
    clock.Mark(modules);
    return Step();
  }));
  RETURN_IF_ERROR(checkpoint.Save(0, result));
  clock.End();
  const LayerCost cost = whole ? LayerCost{.once = clock.Whole()} : clock.Split(probe);
  const auto measured = static_cast<double>(TokensOf(*calibration_, kMeasuredSequences));
  for (const Stage& other : stages_) {
    if (other.layer < 0) continue;
    const double share = static_cast<double>(QuantizedWeights(other)) / static_cast<double>(std::max<int64_t>(QuantizedWeights(stage), 1));
    quantizing_ = quantizing_ + share * cost.once + tokens * cost.observe + measured * cost.advance_measured +
                  (tokens - measured) * cost.advance;
  }
  // The outputs of more sequences are kept to measure errors on.
  const int64_t more = std::max<int64_t>(TokensOf(*calibration_, kMeasuredSequences) - TokensOf(probe, parts.max_measured), 0);
  quantizing_peak_ = meter_.Lap().peak_memory_bytes + more * config.hidden_size * static_cast<int64_t>(sizeof(float));
  return absl::OkStatus();
}

absl::Status RunProbe::ProbeLayersWithoutData(Checkpoint& checkpoint) {
  ASSIGN_OR_RETURN(const MethodParts method, MakeMethodParts(recipe_));
  const std::vector<const Stage*> heaviest = HeavyStages();
  std::vector<Cost> costs;
  int64_t saved = 0;
  for (const Stage* stage : heaviest) {
    const Cost start = Now();
    ASSIGN_OR_RETURN(const StageResult result,
                     RunDataFreeStage(reader_, plan_, *stage, *method.quantizer, pool_, [&](int64_t) { return Step(); }));
    RETURN_IF_ERROR(checkpoint.Save(saved++, result));
    costs.push_back(Now() - start);
  }
  if (costs.size() > 1) costs.erase(costs.begin());  // what is done once per process is in it
  const Cost cost = Mean(costs);
  for (const Stage& stage : stages_) {
    if (stage.layer < 0 || heaviest.empty()) continue;
    quantizing_ = quantizing_ +
                  (static_cast<double>(QuantizedWeights(stage)) / static_cast<double>(std::max<int64_t>(QuantizedWeights(Heaviest()), 1))) *
                      cost;
  }
  quantizing_peak_ = meter_.Lap().peak_memory_bytes;
  return absl::OkStatus();
}

// Quantizes the first rows of what is outside the layers.
absl::Status RunProbe::ProbeRest() {
  ASSIGN_OR_RETURN(const std::unique_ptr<WeightQuantizer> rtn, MakeRtnQuantizer(recipe_));
  for (const PlannedModule* module : stages_.back().modules) {
    if (!module->quantized) continue;
    PlannedModule slice = *module;
    slice.out = std::min(module->out, std::max<int64_t>(kSliceWeights / module->in, 1));
    const double share = static_cast<double>(module->out) / static_cast<double>(slice.out);
    meter_.Lap();
    const int64_t before = AnonymousMemory();
    const Cost start = Now();
    ASSIGN_OR_RETURN(const Weight weight, reader_.ReadWeight(module->name));
    Tensor matrix(DType::kF32, {slice.out, slice.in});
    RETURN_IF_ERROR(ConvertToFloat({weight.dense->dtype, {slice.out, slice.in}, weight.dense->data}, matrix.as<float>()));
    StageResult result;
    RETURN_IF_ERROR(
        QuantizeModule(slice, plan_, {matrix.as<float>().data(), slice.out, slice.in}, nullptr, std::nullopt, *rtn, pool_, result)
            .status());
    quantizing_ = quantizing_ + share * (Now() - start);
    const int64_t peak = meter_.Lap().peak_memory_bytes;
    quantizing_peak_ = std::max(quantizing_peak_, before + static_cast<int64_t>(share * static_cast<double>(peak - before)));
    RETURN_IF_ERROR(Step());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PhaseUse>> RunProbe::Run(const std::string& output) {
  const std::string path = absl::StrCat(absl::StripSuffix(output, "/"), kProbeSuffix);
  ASSIGN_OR_RETURN(std::unique_ptr<Checkpoint> checkpoint, Checkpoint::Open(path, OrderedJson::object(), /*resume=*/true));
  if (checkpoint->num_done() > 0) {  // a killed probe left it
    checkpoint->Remove();
    checkpoint.reset();
    ASSIGN_OR_RETURN(checkpoint, Checkpoint::Open(path, OrderedJson::object(), /*resume=*/false));
  }
  total_steps_ = CountSteps();
  const absl::Status probed = [&]() -> absl::Status {
    RETURN_IF_ERROR(ProbeChecks());
    RETURN_IF_ERROR(calibration_ != nullptr ? ProbeLayersWithData(*checkpoint) : ProbeLayersWithoutData(*checkpoint));
    return ProbeRest();
  }();
  checkpoint->Remove();
  RETURN_IF_ERROR(probed);
  quantizing_ = quantizing_ + static_cast<double>(plan_.output_bytes) * hash_;
  return std::vector<PhaseUse>{
      {"checking", {checking_.seconds, checking_.cpu_seconds, checking_peak_}},
      {"quantizing", {quantizing_.seconds, quantizing_.cpu_seconds, quantizing_peak_}},
  };
}

}  // namespace

absl::StatusOr<std::vector<PhaseUse>> EstimateCompression(const ArtifactReader& reader, const Recipe& recipe, const CompressionPlan& plan,
                                                          const CalibrationData* calibration, const std::string& output, ThreadPool& pool,
                                                          const std::function<absl::Status(int64_t, int64_t)>& progress) {
  return RunProbe(reader, recipe, plan, calibration, pool, progress).Run(output);
}

}  // namespace pith
