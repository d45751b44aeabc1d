#include "compression/run_estimate.h"

#include <algorithm>
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
#include "compression/rotated_reader.h"
#include "compression/scaled_layer.h"
#include "compression/stage.h"
#include "compression/stage_clock.h"
#include "model/decoder_config.h"

namespace pith {
namespace {

constexpr int64_t kProbeSequences = 10, kProbeMeasured = 4;  // the latter with the dense layer beside the quantized one
constexpr size_t kProbeStages = 4;                           // without data, when a layer is done in milliseconds
constexpr int64_t kSliceWeights = int64_t{1} << 22;          // of the embedding or head
constexpr char kProbeSuffix[] = ".dry-run";

int64_t QuantizedWeights(const Stage& stage) {
  int64_t weights = 0;
  for (const PlannedModule* module : stage.modules) weights += module->quantized ? module->out * module->in : 0;
  return weights;
}

int64_t WeightsOf(const PlannedModule& module) {
  return module.quantized ? module.out * module.in : NumElements(module.tensors.front().shape);
}

// As many of its rows as are tried.
PlannedModule Slice(const PlannedModule& module, int64_t weights) {
  PlannedModule slice = module;
  slice.out = std::min(module.out, std::max<int64_t>(weights / module.in, 1));
  return slice;
}

double Ratio(int64_t part, int64_t whole) { return static_cast<double>(part) / static_cast<double>(std::max<int64_t>(whole, 1)); }

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

std::vector<int64_t> LengthsOf(const CalibrationData& data) {
  std::vector<int64_t> lengths;
  for (const std::vector<int32_t>& sequence : data.sequences) lengths.push_back(static_cast<int64_t>(sequence.size()));
  return lengths;
}

// Tokens of the first `count` sequences.
int64_t TokensOf(const CalibrationData& data, int64_t count) {
  int64_t tokens = 0;
  for (int64_t i = 0; i < std::min(count, static_cast<int64_t>(data.sequences.size())); ++i) {
    tokens += static_cast<int64_t>(data.sequences[static_cast<size_t>(i)].size());
  }
  return tokens;
}

class RunProbe {
 public:
  // `source`: what is quantized, where that is not `stored` itself.
  RunProbe(const ArtifactReader& stored, const ArtifactReader* source, const Recipe& recipe, const CompressionPlan& plan,
           const CalibrationData* calibration, ThreadPool& pool, const std::function<absl::Status(int64_t, int64_t)>& progress)
      : stored_(stored),
        reader_(source != nullptr ? *source : stored),
        recipe_(recipe),
        plan_(plan),
        calibration_(calibration),
        pool_(pool),
        progress_(progress),
        stages_(SplitStages(plan)) {}

  absl::StatusOr<std::vector<PhaseUse>> Run(const std::string& output);

 private:
  absl::Status Step(int64_t steps = 1) {
    steps_ = std::min(steps_ + steps, total_steps_);
    return progress_ ? progress_(steps_, total_steps_) : absl::OkStatus();
  }
  int64_t CountSteps() const;
  bool is_rotated() const { return &reader_ != &stored_; }
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
  // A head that the pipeline codes, behind the layer that was tried.
  absl::Status ProbeHead(SequentialPipeline& pipeline, const CalibrationData& probe);
  absl::Status ProbeRest();
  absl::Status ProbeRounding(const PlannedModule& module, WeightQuantizer& quantizer);
  absl::Status ProbeKept(const PlannedModule& module);
  int64_t StoredWeights() const;
  // Of what was added since `held` the run will hold `share` times as much.
  void TakePeak(int64_t held, double share) {
    const int64_t peak = meter_.Lap().peak_memory_bytes;
    quantizing_peak_ = std::max(quantizing_peak_, held + static_cast<int64_t>(share * static_cast<double>(peak - held)));
  }

  const ArtifactReader& stored_;
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
  const PlannedModule* probed_head_ = nullptr;
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
  for (const PlannedModule* module : stages_.back().modules) steps += module->quantized || is_rotated() ? 1 : 0;
  if (calibration_ != nullptr) {
    return steps + static_cast<int64_t>(2 * ProbeData(*calibration_).sequences.size() + Heaviest().modules.size());
  }
  for (const Stage* stage : HeavyStages()) steps += static_cast<int64_t>(stage->modules.size());
  return steps;
}

// A head that rotating sets apart is stored once, with the embedding.
int64_t RunProbe::StoredWeights() const {
  int64_t weights = 0;
  for (const PlannedModule& module : plan_.modules) weights += stored_.HasWeight(module.name) ? WeightsOf(module) : 0;
  return weights;
}

// Looks at the weights of one layer and hashes them.
absl::Status RunProbe::ProbeChecks() {
  meter_.Lap();
  int64_t weights = 0, bytes = 0;
  Cost start = CostNow();
  for (const PlannedModule* module : Heaviest().modules) {
    RETURN_IF_ERROR(CheckFinite(stored_, module->name));
    weights += WeightsOf(*module);
  }
  const Cost check = CostNow() - start;
  start = CostNow();
  Sha256 hash;
  for (const PlannedModule* module : Heaviest().modules) {
    const absl::StatusOr<Weight> weight = stored_.ReadWeight(module->name);
    RETURN_IF_ERROR(weight.status());
    const absl::Span<const uint8_t> content = weight->dense->bytes();
    hash.Update({reinterpret_cast<const char*>(content.data()), content.size()});
    bytes += static_cast<int64_t>(content.size());
  }
  hash_ = (1.0 / static_cast<double>(std::max<int64_t>(bytes, 1))) * (CostNow() - start);
  checking_ = Ratio(StoredWeights(), weights) * check + static_cast<double>(plan_.input_bytes) * hash_;
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
  const Cost start = CostNow();
  ASSIGN_OR_RETURN(const auto pipeline, SequentialPipeline::Create(parts));
  const Cost created = CostNow();
  RETURN_IF_ERROR(pipeline->Begin(0));
  const auto tokens = static_cast<double>(calibration_->num_tokens());
  quantizing_ = (created - start) + (tokens / static_cast<double>(probe.num_tokens())) * (CostNow() - created);
  StageClock clock;
  clock.Begin(CostNow());
  ASSIGN_OR_RETURN(const StageResult result, pipeline->RunStage(stage, [&](int64_t modules) {
    clock.Mark(modules, CostNow());
    return Step();
  }));
  RETURN_IF_ERROR(checkpoint.Save(0, result));
  clock.End(CostNow());
  const LayerCost cost = whole ? LayerCost{.once = clock.Whole()} : clock.Split(LengthsOf(probe), kProbeMeasured);
  const auto measured = static_cast<double>(TokensOf(*calibration_, kMeasuredSequences));
  for (const Stage& other : stages_) {
    if (other.layer < 0) continue;
    quantizing_ = quantizing_ + Ratio(QuantizedWeights(other), QuantizedWeights(stage)) * cost.once + tokens * cost.observe +
                  measured * cost.advance_measured + (tokens - measured) * cost.advance;
  }
  // The outputs of more sequences are kept to measure errors on.
  const int64_t more = std::max<int64_t>(TokensOf(*calibration_, kMeasuredSequences) - TokensOf(probe, parts.max_measured), 0);
  quantizing_peak_ = meter_.Lap().peak_memory_bytes + more * config.hidden_size * static_cast<int64_t>(sizeof(float));
  return ProbeHead(*pipeline, probe);
}

// Some rows, and half as many before: what does not grow with rows shows in the difference.
absl::Status RunProbe::ProbeHead(SequentialPipeline& pipeline, const CalibrationData& probe) {
  const std::vector<const PlannedModule*>& rest = stages_.back().modules;
  const auto head = std::find_if(rest.begin(), rest.end(), [&](const PlannedModule* module) { return pipeline.CodesHead(*module); });
  if (head == rest.end()) return absl::OkStatus();
  probed_head_ = *head;
  ReturnFreeMemory();  // as a run does
  const PlannedModule slices[] = {Slice(**head, kSliceWeights / 2), Slice(**head, kSliceWeights)};
  Cost observed, read, coded[2];
  size_t to_observe = probe.sequences.size();  // the second time nothing is observed
  for (const int i : {0, 1}) {
    Cost last = CostNow();
    int64_t held = 0;
    const auto mark = [&](int64_t modules) {
      if (modules > 0) {
        coded[i] = CostNow() - last;
      } else if (to_observe > 0) {
        --to_observe;
        observed = observed + (CostNow() - last);
      } else {
        read = CostNow() - last;
        TakePeak(0, 1.0);
        held = AnonymousMemory();
      }
      last = CostNow();
      return Step(0);
    };
    RETURN_IF_ERROR(pipeline.RunHead(slices[i], mark).status());
    TakePeak(held, Ratio((*head)->out, slices[i].out));
  }
  const Cost row = (1.0 / static_cast<double>(slices[1].out)) * coded[1];
  const Cost once = AtLeastZero(coded[0] - static_cast<double>(slices[0].out) * row);
  quantizing_ = quantizing_ + Ratio(calibration_->num_tokens(), probe.num_tokens()) * observed + read + once +
                static_cast<double>((*head)->out) * row;
  return Step();
}

absl::Status RunProbe::ProbeLayersWithoutData(Checkpoint& checkpoint) {
  ASSIGN_OR_RETURN(const MethodParts method, MakeMethodParts(recipe_));
  const std::vector<const Stage*> heaviest = HeavyStages();
  std::vector<Cost> costs;
  int64_t saved = 0;
  for (const Stage* stage : heaviest) {
    const Cost start = CostNow();
    ASSIGN_OR_RETURN(const StageResult result,
                     RunDataFreeStage(reader_, plan_, *stage, *method.quantizer, pool_, [&](int64_t) { return Step(); }));
    RETURN_IF_ERROR(checkpoint.Save(saved++, result));
    costs.push_back(CostNow() - start);
  }
  if (costs.size() > 1) costs.erase(costs.begin());  // what is done once per process is in it
  const Cost cost = MeanCost(costs);
  for (const Stage& stage : stages_) {
    if (stage.layer < 0 || heaviest.empty()) continue;
    quantizing_ = quantizing_ + Ratio(QuantizedWeights(stage), QuantizedWeights(Heaviest())) * cost;
  }
  quantizing_peak_ = meter_.Lap().peak_memory_bytes;
  return absl::OkStatus();
}

// Rounds the first rows, as is done with what is outside the layers and no head that the pipeline codes.
absl::Status RunProbe::ProbeRounding(const PlannedModule& module, WeightQuantizer& quantizer) {
  Cost start = CostNow();
  ASSIGN_OR_RETURN(const Tensor matrix, ReadMatrix(reader_, module.name));
  quantizing_ = quantizing_ + (CostNow() - start);
  TakePeak(0, 1.0);
  const int64_t held = AnonymousMemory();
  const PlannedModule slice = Slice(module, kSliceWeights);
  const double share = Ratio(module.out, slice.out);
  start = CostNow();
  StageResult result;
  RETURN_IF_ERROR(
      QuantizeModule(slice, plan_, {matrix.as<float>().data(), slice.out, slice.in}, nullptr, std::nullopt, quantizer, pool_, result)
          .status());
  quantizing_ = quantizing_ + share * (CostNow() - start);
  TakePeak(held, share);
  return absl::OkStatus();
}

// Copying costs nothing, rotating does.
absl::Status RunProbe::ProbeKept(const PlannedModule& module) {
  const Cost start = CostNow();
  ASSIGN_OR_RETURN(const Weight weight, reader_.ReadWeight(module.name));
  StageResult result;
  RETURN_IF_ERROR(CopyTensor(module.tensors.front(), *weight.dense, result));
  quantizing_ = quantizing_ + (CostNow() - start);
  TakePeak(0, 1.0);
  return absl::OkStatus();
}

absl::Status RunProbe::ProbeRest() {
  ASSIGN_OR_RETURN(const std::unique_ptr<WeightQuantizer> rtn, MakeRtnQuantizer(recipe_));
  ReturnFreeMemory();
  for (const PlannedModule* module : stages_.back().modules) {
    if (module == probed_head_ || !(module->quantized || is_rotated())) continue;
    meter_.Lap();
    RETURN_IF_ERROR(module->quantized ? ProbeRounding(*module, *rtn) : ProbeKept(*module));
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
  ASSIGN_OR_RETURN(const std::unique_ptr<RotatedReader> rotated, OpenRotated(reader, recipe.rotation, pool));
  return RunProbe(reader, rotated.get(), recipe, plan, calibration, pool, progress).Run(output);
}

}  // namespace pith
