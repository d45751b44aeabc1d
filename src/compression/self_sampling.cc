#include "compression/self_sampling.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/cpu_features.h"
#include "base/random.h"
#include "base/status.h"
#include "compression/sample_starts.h"
#include "kv_cache/block_pool.h"
#include "kv_cache/kv_storage.h"
#include "sampling/cdf_inversion.h"

namespace pith {
namespace {

constexpr int64_t kMaxSequences = 128;             // decoded together
constexpr int64_t kMaxKvBytes = int64_t{1} << 30;  // of their keys and values
constexpr int64_t kMaxRowsPerPass = 1024;          // starts that do not fit wait for the next pass
constexpr int64_t kStartStride = 23;               // from a start to the next one of a sample: prime, and divides no table's size
constexpr int64_t kTimedPasses = 3;
constexpr int64_t kShortestEstimated = 128;         // shorter samples are as quickly made as estimated
constexpr uint64_t kRawStream = uint64_t{1} << 62;  // streams of the seed for the orders of the two tables; above those of the samples
constexpr uint64_t kChatStream = kRawStream + 1;

struct EncodedStart {
  std::string domain;
  std::vector<int32_t> tokens;
};

// The starts as ids, in the order the seed gives.
class StartTable {
 public:
  static absl::StatusOr<StartTable> Make(const ModelText& model_text, uint64_t seed) {
    StartTable table;
    const std::optional<TokenId> bos = AddedBos(model_text.tokenizer);
    for (const SampleStart& start : RawStarts()) {
      ASSIGN_OR_RETURN(std::vector<int32_t> tokens, EncodeText(model_text, start.text));
      if (bos.has_value()) tokens.insert(tokens.begin(), *bos);
      if (!tokens.empty()) table.raw_.push_back({std::string(start.domain), std::move(tokens)});
    }
    if (table.raw_.empty()) return BadFileError("tokenizer: expected ids for the starts of texts, found none");
    Shuffle(table.raw_, seed, kRawStream);
    if (model_text.chat_template == nullptr) return table;
    for (const SampleStart& message : UserMessages()) {
      const OrderedJson messages = {{{"role", "user"}, {"content", std::string(message.text)}}};
      ASSIGN_OR_RETURN(std::vector<int32_t> tokens, EncodeConversation(model_text, messages, /*add_generation_prompt=*/true));
      if (tokens.empty()) return BadFileError("chat template: expected a prompt for a user's message, found none");
      table.chat_.push_back({absl::StrCat("chat/", message.domain), std::move(tokens)});
    }
    Shuffle(table.chat_, seed, kChatStream);
    return table;
  }

  // The start after `number` others in a sample.
  const EncodedStart& Find(int64_t sample, int64_t number) const {
    const bool chat = !chat_.empty() && sample % 2 == 0;
    const std::vector<EncodedStart>& starts = chat ? chat_ : raw_;
    const int64_t first = chat_.empty() ? sample : sample / 2;
    return starts[static_cast<size_t>(first + number * kStartStride) % starts.size()];
  }

 private:
  static void Shuffle(std::vector<EncodedStart>& starts, uint64_t seed, uint64_t stream) {
    RandomStream random(seed, stream);
    for (size_t i = starts.size(); i > 1; --i) std::swap(starts[i - 1], starts[random.Below(i)]);
  }

  std::vector<EncodedStart> raw_, chat_;
};

// A sample on its way.
struct SampledSequence {
  int64_t sample = 0;
  int64_t num_starts = 0;
  const EncodedStart* start = nullptr;  // whose text is written
  std::vector<int32_t> tokens;
  BlockTable blocks;  // num_tokens: how many of `tokens` have been through the model
};

class SelfSampler {
 public:
  SelfSampler(DecoderModel& model, StartTable starts, std::vector<int32_t> ends, const CalibrationOptions& options, int64_t max_sequences,
              KvStorage storage, ThreadPool& pool)
      : model_(model),
        starts_(std::move(starts)),
        ends_(std::move(ends)),
        max_sequences_(max_sequences),
        vocab_size_(static_cast<size_t>(model.config().vocab_size)),
        blocks_(storage.spec().num_blocks),
        storage_(std::move(storage)),
        pool_(pool) {
    data_.options = options;
    data_.sequences.resize(static_cast<size_t>(options.num_samples));
  }

  absl::StatusOr<CalibrationData> Run(const CalibrationProgress& progress) {
    const int64_t total = data_.options.num_samples * data_.options.sequence_length;
    while (Admit()) {
      if (progress != nullptr) RETURN_IF_ERROR(progress("sampling", num_tokens_, total));
      RETURN_IF_ERROR(Forward());
      RETURN_IF_ERROR(Draw());
      Commit();
    }
    if (progress != nullptr) RETURN_IF_ERROR(progress("sampling", total, total));
    return std::move(data_);
  }

  // What Run would take, from a few passes: the first over the starts, and some near the beginning and the end of the samples, for keys and
  // values of more tokens take longer to read. All memory of Run is taken. Run may not follow.
  absl::StatusOr<ResourceUse> Estimate(const CalibrationProgress& progress);

 private:
  // One pass over sequences of `position` tokens, the mean of a few.
  absl::StatusOr<ResourceUse> TimePass(int64_t position);
  // Half of a pass near the beginning and half of one near the end.
  absl::StatusOr<ResourceUse> TimeMeanPass(int64_t first_position);

  bool Full(const SampledSequence& sequence) const { return static_cast<int64_t>(sequence.tokens.size()) == data_.options.sequence_length; }

  void Append(SampledSequence& sequence, int32_t token) {
    sequence.tokens.push_back(token);
    ++data_.domain_tokens[sequence.start->domain];
    ++num_tokens_;
  }

  // As much of the next start as there is room for. A BOS that the model has drawn is the one the start begins with.
  void AppendStart(SampledSequence& sequence) {
    sequence.start = &starts_.Find(sequence.sample, sequence.num_starts++);
    absl::Span<const int32_t> tokens = sequence.start->tokens;
    if (!sequence.tokens.empty() && sequence.tokens.back() == tokens.front()) tokens.remove_prefix(1);
    for (const int32_t token : tokens) {
      if (!Full(sequence)) Append(sequence, token);
    }
  }

  // Begins samples while there is room; false when all are done.
  bool Admit() {
    while (static_cast<int64_t>(active_.size()) < max_sequences_ && next_sample_ < data_.options.num_samples) {
      SampledSequence& sequence = active_.emplace_back();
      sequence.sample = next_sample_++;
      AppendStart(sequence);
      if (Full(sequence)) Finish(active_.size() - 1);
    }
    return !active_.empty();
  }

  void Finish(size_t index) {
    SampledSequence& sequence = active_[index];
    data_.sequences[static_cast<size_t>(sequence.sample)] = std::move(sequence.tokens);
    blocks_.Release(sequence.blocks);
    active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  // Runs what has not been through the model, of as many sequences as fit into a pass; logits_ are those after the last token of each.
  absl::Status Forward() {
    ForwardBatch batch;
    drawn_.clear();
    for (size_t i = 0; i < active_.size(); ++i) {
      SampledSequence& sequence = active_[i];
      const int64_t begin = sequence.blocks.num_tokens, end = static_cast<int64_t>(sequence.tokens.size());
      if (batch.num_rows() > 0 && batch.num_rows() + end - begin > kMaxRowsPerPass) continue;
      RETURN_IF_ERROR(blocks_.Grow(sequence.blocks, end));
      batch.sequences.push_back(
          {.row_begin = batch.num_rows(), .num_rows = end - begin, .first_position = begin, .blocks = &sequence.blocks});
      batch.token_ids.insert(batch.token_ids.end(), sequence.tokens.begin() + begin, sequence.tokens.end());
      batch.logits_rows.push_back(static_cast<int32_t>(batch.num_rows() - 1));
      drawn_.push_back({.index = i});
    }
    logits_.resize(drawn_.size() * vocab_size_);
    RETURN_IF_ERROR(model_.Forward(batch, storage_, absl::MakeSpan(logits_)));
    for (const Drawn& drawn : drawn_) {
      SampledSequence& sequence = active_[drawn.index];
      sequence.blocks.num_tokens = static_cast<int64_t>(sequence.tokens.size());
    }
    return absl::OkStatus();
  }

  absl::Status Draw() {
    pool_.ParallelForDynamic(static_cast<int64_t>(drawn_.size()), 1, [&](int64_t begin, int64_t end, int) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
        const SampledSequence& sequence = active_[drawn_[i].index];
        const double uniform = UniformOpen(data_.options.seed, static_cast<uint64_t>(sequence.sample), sequence.tokens.size());
        drawn_[i].token = DrawByInversion(absl::MakeConstSpan(logits_).subspan(i * vocab_size_, vocab_size_), uniform);
      }
    });
    for (const Drawn& drawn : drawn_) {
      const SampledSequence& sequence = active_[drawn.index];
      if (drawn.token < 0) {
        return BugError("logits of calibration sample ", sequence.sample, ", position ", sequence.tokens.size(),
                        ": expected a finite largest value, found none");
      }
    }
    return absl::OkStatus();
  }

  void Commit() {
    for (size_t i = drawn_.size(); i-- > 0;) {  // backwards, for Finish moves those behind
      SampledSequence& sequence = active_[drawn_[i].index];
      Append(sequence, drawn_[i].token);
      if (!Full(sequence) && std::find(ends_.begin(), ends_.end(), drawn_[i].token) != ends_.end()) AppendStart(sequence);
      if (Full(sequence)) Finish(drawn_[i].index);
    }
  }

  struct Drawn {
    size_t index = 0;  // in active_
    int32_t token = -1;
  };

  DecoderModel& model_;
  const StartTable starts_;
  const std::vector<int32_t> ends_;  // tokens that end a text
  const int64_t max_sequences_;
  const size_t vocab_size_;
  BlockPool blocks_;
  KvStorage storage_;
  ThreadPool& pool_;
  CalibrationData data_;
  int64_t next_sample_ = 0, num_tokens_ = 0;
  std::vector<SampledSequence> active_;  // in the order of samples
  std::vector<Drawn> drawn_;             // of the last pass, indices ascending
  std::vector<float> logits_;            // [drawn_.size(), vocab_size]
};

void AddTimes(double factor, const ResourceUse& use, ResourceUse& sum) {
  sum.seconds += factor * use.seconds;
  sum.cpu_seconds += factor * use.cpu_seconds;
}

absl::StatusOr<ResourceUse> SelfSampler::TimePass(int64_t position) {
  for (SampledSequence& sequence : active_) {
    sequence.tokens.resize(static_cast<size_t>(position), 0);
    RETURN_IF_ERROR(blocks_.Grow(sequence.blocks, position));
    sequence.blocks.num_tokens = position - 1;
  }
  ResourceMeter meter;
  for (int64_t i = 0; i < kTimedPasses; ++i) {
    RETURN_IF_ERROR(Forward());
    RETURN_IF_ERROR(Draw());
    for (const Drawn& drawn : drawn_) active_[drawn.index].tokens.push_back(drawn.token);  // none is finished: all are as long
  }
  ResourceUse mean;
  AddTimes(1.0 / static_cast<double>(kTimedPasses), meter.Lap(), mean);
  return mean;
}

absl::StatusOr<ResourceUse> SelfSampler::TimeMeanPass(int64_t first_position) {
  ResourceUse mean;
  for (const int64_t position : {first_position, data_.options.sequence_length - kTimedPasses}) {
    ASSIGN_OR_RETURN(const ResourceUse pass, TimePass(position));
    AddTimes(0.5, pass, mean);
  }
  return mean;
}

absl::StatusOr<ResourceUse> SelfSampler::Estimate(const CalibrationProgress& progress) {
  constexpr int64_t kSteps = 3;
  if (progress != nullptr) RETURN_IF_ERROR(progress("trying", 1, kSteps));
  const int64_t layers = storage_.spec().num_layers, array_bytes = storage_.bytes() / (2 * layers);
  for (int64_t i = 0; i < layers; ++i) {
    std::memset(storage_.key(i), 0, static_cast<size_t>(array_bytes));
    std::memset(storage_.value(i), 0, static_cast<size_t>(array_bytes));
  }
  ResourceMeter meter;
  Admit();
  const auto batch = static_cast<int64_t>(active_.size());
  const int64_t start_tokens = num_tokens_ / std::max<int64_t>(batch, 1);
  const auto waits = [](const SampledSequence& sequence) { return sequence.blocks.num_tokens == 0; };
  while (std::any_of(active_.begin(), active_.end(), waits)) {
    RETURN_IF_ERROR(Forward());
    RETURN_IF_ERROR(Draw());
    Commit();
  }
  if (static_cast<int64_t>(active_.size()) < batch) {  // starts as long as samples: little remains to be done
    RETURN_IF_ERROR(Run(progress).status());
    return meter.Lap();
  }
  const ResourceUse starts = meter.Lap();
  if (progress != nullptr) RETURN_IF_ERROR(progress("trying", 2, kSteps));
  const int64_t samples = data_.options.num_samples, rest = samples % batch;
  const auto passes = static_cast<double>(data_.options.sequence_length - start_tokens);  // per batch
  ResourceUse sum{.peak_memory_bytes = starts.peak_memory_bytes};
  AddTimes(static_cast<double>(samples) / static_cast<double>(batch), starts, sum);
  ASSIGN_OR_RETURN(const ResourceUse pass, TimeMeanPass(start_tokens));
  AddTimes(passes * static_cast<double>(samples / batch), pass, sum);
  if (rest > 0) {
    active_.resize(static_cast<size_t>(rest));
    ASSIGN_OR_RETURN(const ResourceUse smaller, TimeMeanPass(start_tokens));
    AddTimes(passes, smaller, sum);
  }
  if (progress != nullptr) RETURN_IF_ERROR(progress("trying", kSteps, kSteps));
  sum.peak_memory_bytes = std::max(sum.peak_memory_bytes, meter.Lap().peak_memory_bytes);
  return sum;
}

std::vector<int32_t> EndTokens(const ModelText& model_text) {
  std::vector<int32_t> ends = model_text.stop_token_ids;
  for (const std::optional<TokenId> id : {model_text.tokenizer.eos_id(), model_text.tokenizer.bos_id()}) {
    if (id.has_value()) ends.push_back(*id);
  }
  return ends;
}

absl::StatusOr<SelfSampler> MakeSampler(DecoderModel& model, const ModelText& model_text, const CalibrationOptions& options,
                                        int64_t max_sequences, ThreadPool& pool) {
  RETURN_IF_ERROR(Validate(options));
  const DecoderConfig& config = model.config();
  if (options.sequence_length > config.max_position_embeddings) {
    return UsageError("calibration: expected samples of at most max_position_embeddings = ", config.max_position_embeddings,
                      " tokens, found ", options.sequence_length);
  }
  if (model_text.tokenizer.vocab_size() > config.vocab_size) {
    return BadFileError("tokenizer: expected at most vocab_size = ", config.vocab_size, " ids, found ", model_text.tokenizer.vocab_size());
  }
  ASSIGN_OR_RETURN(StartTable starts, StartTable::Make(model_text, options.seed));
  const int64_t blocks = BlockPool::BlocksForTokens(options.sequence_length);
  const int64_t sequence_bytes = blocks * kBlockSizeTokens * model.KvSpecAs(KvDtype::kBf16, 1).bytes_per_token();
  const int64_t sequences = std::clamp(std::min(max_sequences, kMaxKvBytes / sequence_bytes), int64_t{1}, options.num_samples);
  ASSIGN_OR_RETURN(KvStorage storage, KvStorage::Create(model.KvSpecAs(KvDtype::kBf16, sequences * blocks)));
  return SelfSampler(model, std::move(starts), EndTokens(model_text), options, sequences, std::move(storage), pool);
}

absl::StatusOr<std::unique_ptr<DecoderModel>> LoadModel(const ArtifactReader& reader, ThreadPool& pool,
                                                        const CalibrationProgress& progress) {
  ASSIGN_OR_RETURN(const Isa isa, SelectIsa());
  absl::Status interrupted;
  LoadOptions load{.pool = &pool, .isa = isa};
  if (progress != nullptr) {
    load.progress = [&](int64_t done, int64_t total) {
      if (interrupted.ok()) interrupted = progress("loading", done, total);
    };
  }
  auto model = DecoderModel::Load(reader, load);
  RETURN_IF_ERROR(model.status());
  RETURN_IF_ERROR(interrupted);
  return model;
}

}  // namespace

absl::StatusOr<CalibrationData> SampleFromModel(DecoderModel& model, const ModelText& model_text, const CalibrationOptions& options,
                                                int64_t max_sequences, ThreadPool& pool, const CalibrationProgress& progress) {
  ASSIGN_OR_RETURN(SelfSampler sampler, MakeSampler(model, model_text, options, max_sequences, pool));
  return sampler.Run(progress);
}

absl::StatusOr<CalibrationData> SampleCalibrationData(const ArtifactReader& reader, const ModelText& model_text,
                                                      const CalibrationOptions& options, ThreadPool& pool,
                                                      const CalibrationProgress& progress) {
  RETURN_IF_ERROR(Validate(options));
  ASSIGN_OR_RETURN(const std::unique_ptr<DecoderModel> model, LoadModel(reader, pool, progress));
  return SampleFromModel(*model, model_text, options, kMaxSequences, pool, progress);
}

absl::StatusOr<ResourceUse> EstimateSampling(const ArtifactReader& reader, const ModelText& model_text, const CalibrationOptions& options,
                                             ThreadPool& pool, const CalibrationProgress& progress) {
  RETURN_IF_ERROR(Validate(options));
  ResourceMeter meter;
  ASSIGN_OR_RETURN(const std::unique_ptr<DecoderModel> model, LoadModel(reader, pool, progress));
  ASSIGN_OR_RETURN(SelfSampler sampler, MakeSampler(*model, model_text, options, kMaxSequences, pool));
  if (options.sequence_length < kShortestEstimated) {
    RETURN_IF_ERROR(sampler.Run(progress).status());
    return meter.Lap();
  }
  ResourceUse use = meter.Lap();
  ASSIGN_OR_RETURN(const ResourceUse sampling, sampler.Estimate(progress));
  AddTimes(1.0, sampling, use);
  use.peak_memory_bytes = std::max(use.peak_memory_bytes, sampling.peak_memory_bytes);
  return use;
}

CalibrationData RandomCalibrationData(const CalibrationOptions& options, int64_t vocab_size) {
  CalibrationData data{.options = options};
  RandomStream random(options.seed, kRawStream);
  for (int64_t i = 0; i < options.num_samples; ++i) {
    std::vector<int32_t>& tokens = data.sequences.emplace_back(static_cast<size_t>(options.sequence_length));
    for (int32_t& token : tokens) token = static_cast<int32_t>(random.Below(static_cast<uint64_t>(vocab_size)));
  }
  data.domain_tokens["random"] = data.num_tokens();
  return data;
}

}  // namespace pith
