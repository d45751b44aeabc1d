#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "base/status.h"
#include "engine/engine_invariants.h"
#include "engine/model_executor.h"
#include "engine/scheduler.h"
#include "engine/sequence.h"

namespace pith {
namespace {

// Prompt rows with logits per pass: bounds the logits buffer at 64 x vocab_size floats per such sequence.
constexpr int64_t kMaxLogitsRowsPerPass = 64;

// kOutOfRange about max_tokens: the request means something, but there is no room for it.
template <typename... Args> absl::Status TooLong(const Args&... args) {
  const absl::Status field = FieldError("max_tokens", args...);
  absl::Status status(absl::StatusCode::kOutOfRange, field.message());
  field.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) { status.SetPayload(type, payload); });
  return status;
}

class EngineImpl : public Engine {
 public:
  EngineImpl(DecoderModel& model, const EngineConfig& config, KvStorage storage)
      : config_(config), vocab_size_(model.config().vocab_size), pool_(config.kv_blocks), executor_(model, std::move(storage)) {
    metrics_.kv_blocks_total = config.kv_blocks;
    metrics_.kv_block_size = kBlockSizeTokens;
    metrics_.kv_cache_dtype = std::string(KvDtypeName(*config.kv_cache_dtype));
  }

  absl::Status Check(const Request& request) const override {
    if (request.prompt.empty()) return FieldError("prompt", "expected at least one token, found none");
    for (const int32_t token : request.prompt) {
      if (token < 0 || token >= vocab_size_) return FieldError("prompt", "expected token ids in [0, ", vocab_size_, "), found ", token);
    }
    if (request.max_tokens < 0) return FieldError("max_tokens", "expected at least 0, found ", request.max_tokens);
    const auto prompt = static_cast<int64_t>(request.prompt.size());
    if (prompt > config_.max_model_len || request.max_tokens > config_.max_model_len - prompt) {
      return TooLong("the context length is ", config_.max_model_len, " tokens: expected prompt and completion to fit, found ", prompt,
                     " in the prompt and ", request.max_tokens, " to generate");
    }
    if (BlockPool::BlocksForTokens(prompt + request.max_tokens) > config_.kv_blocks) {
      return TooLong("the KV cache holds ", config_.kv_blocks * kBlockSizeTokens, " tokens: expected prompt and completion to fit, found ",
                     prompt, " in the prompt and ", request.max_tokens, " to generate");
    }
    return Validate(request.sampling, vocab_size_);
  }

  absl::Status Add(Request request) override {
    RETURN_IF_ERROR(Check(request));
    if (running_.contains(request.id) || waiting_.contains(request.id)) return BugError("request ", request.id, ": the id is in use");
    auto sequence = std::make_unique<Sequence>();
    sequence->arrival = next_arrival_++;
    sequence->tokens = request.prompt;
    if (request.sampling.has_penalties()) sequence->history.AddPrompt(request.prompt);
    sequence->request = std::move(request);
    const RequestId id = sequence->request.id;
    waiting_.emplace(id, std::move(sequence));
    UpdateGauges();
    return absl::OkStatus();
  }

  void Abort(RequestId id) override {
    if (const auto it = running_.find(id); it != running_.end()) {
      pool_.Release(it->second->blocks);
      running_.erase(it);
    }
    waiting_.erase(id);
    UpdateGauges();
  }

  bool HasWork() const override { return !running_.empty() || !waiting_.empty(); }

  absl::StatusOr<std::vector<RequestOutput>> Step() override {
    const auto start = std::chrono::steady_clock::now();
    const StepPlan plan = PlanStep(Entries(running_), Entries(waiting_), pool_.num_free(),
                                   {config_.max_batch_tokens, config_.max_sequences, config_.prefill_chunk});
    if (plan.empty())
      return BugError("engine: expected work to plan for ", running_.size(), " running and ", waiting_.size(), " waiting requests");
    RETURN_IF_ERROR(Reserve(plan));
    std::vector<Sequence*> sequences;
    for (const PlannedRows& rows : plan.rows) sequences.push_back(running_.at(rows.id).get());
    const auto executed = executor_.Run(plan, sequences);
    std::vector<RequestOutput> outputs;
    for (size_t i = 0; i < sequences.size(); ++i) {
      RequestOutput output = executed.ok() ? Commit(*sequences[i], plan.rows[i], (*executed)[i]) : Failed(*sequences[i], executed.status());
      if (output.finish != FinishReason::kNone) Retire(output.id);
      if (!output.tokens.empty() || !output.prompt_logprobs.empty() || output.finish != FinishReason::kNone)
        outputs.push_back(std::move(output));
    }
    ++metrics_.steps;
    metrics_.last_step_rows = plan.num_rows;
    metrics_.last_step_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    UpdateGauges();
#ifdef PITH_DCHECK
    RETURN_IF_ERROR(CheckInvariants(Snapshot()));
#endif
    return outputs;
  }

  const EngineConfig& config() const override { return config_; }
  const EngineMetrics& metrics() const override { return metrics_; }

 private:
  using SequenceMap = std::map<RequestId, std::unique_ptr<Sequence>>;

  static std::vector<SchedulerEntry> Entries(const SequenceMap& sequences) {
    std::vector<SchedulerEntry> entries;
    for (const auto& [id, sequence] : sequences) {
      const bool pending_logprobs = sequence->request.prompt_logprobs && sequence->num_prompt_logprobs + 1 < sequence->num_prompt();
      entries.push_back({.id = id,
                         .priority = sequence->request.priority,
                         .arrival = sequence->arrival,
                         .num_tokens = sequence->num_tokens(),
                         .num_computed = sequence->num_computed,
                         .num_blocks = static_cast<int64_t>(sequence->blocks.blocks.size()),
                         .max_rows = pending_logprobs ? kMaxLogitsRowsPerPass : 0});
    }
    return entries;
  }

  // Moves sequences between the queues and takes the blocks the plan counted on.
  absl::Status Reserve(const StepPlan& plan) {
    for (const RequestId id : plan.preempted) {
      auto node = running_.extract(id);
      Sequence& sequence = *node.mapped();
      pool_.Release(sequence.blocks);
      sequence.num_computed = 0;
      ++metrics_.num_preemptions;
      waiting_.insert(std::move(node));
    }
    for (const RequestId id : plan.admitted) running_.insert(waiting_.extract(id));
    for (const PlannedRows& rows : plan.rows) {
      RETURN_IF_ERROR(pool_.Grow(running_.at(rows.id)->blocks, rows.first_position + rows.num_rows));
    }
    return absl::OkStatus();
  }

  // Takes over what the pass computed for one sequence; samples when it reached the end.
  RequestOutput Commit(Sequence& sequence, const PlannedRows& rows, absl::Span<const ExecutedRow> executed) {
    RequestOutput output{.id = sequence.request.id};
    sequence.num_computed = rows.first_position + rows.num_rows;
    const int64_t prompt_done = std::min(sequence.num_computed, sequence.num_prompt());
    metrics_.prompt_tokens += std::max<int64_t>(0, prompt_done - sequence.num_prompt_counted);
    sequence.num_prompt_counted = std::max(sequence.num_prompt_counted, prompt_done);
    sequence.blocks.num_tokens = sequence.num_computed;
    for (const ExecutedRow& row : executed) {
      const bool prompt_row = row.position + 1 < sequence.num_prompt();
      const absl::Status status = prompt_row ? ReportPromptRow(sequence, row, output) : SampleNext(sequence, row, output);
      if (!status.ok()) return Failed(sequence, status);
    }
    return output;
  }

  absl::Status ReportPromptRow(Sequence& sequence, const ExecutedRow& row, RequestOutput& output) {
    output.prompt_logprobs.push_back(
        TokenLogprobs(row.logits, sequence.tokens[static_cast<size_t>(row.position) + 1], sequence.request.sampling.logprobs));
    ++sequence.num_prompt_logprobs;
    return absl::OkStatus();
  }

  absl::Status SampleNext(Sequence& sequence, const ExecutedRow& row, RequestOutput& output) {
    const Request& request = sequence.request;
    if (sequence.num_generated() == request.max_tokens) {  // max_tokens 0: the prompt only
      output.finish = FinishReason::kLength;
      return absl::OkStatus();
    }
    SamplingContext context{.position = row.position + 1, .history = request.sampling.has_penalties() ? &sequence.history : nullptr};
    if (sequence.num_generated() < request.sampling.min_tokens) context.banned = request.stop_token_ids;
    ASSIGN_OR_RETURN(SampleResult sample, Sample(row.logits, request.sampling, context, scratch_));
    const int32_t token = sample.token;
    sequence.tokens.push_back(token);
    if (request.sampling.has_penalties()) sequence.history.AddOutput(token);
    ++metrics_.generation_tokens;
    output.tokens.push_back(std::move(sample));
    const bool stops = !request.sampling.ignore_eos &&
                       std::find(request.stop_token_ids.begin(), request.stop_token_ids.end(), token) != request.stop_token_ids.end();
    if (stops) {
      output.finish = FinishReason::kStop;
      output.stop_token = token;
    } else if (sequence.num_generated() == request.max_tokens) {
      output.finish = FinishReason::kLength;
    }
    return absl::OkStatus();
  }

  static RequestOutput Failed(const Sequence& sequence, const absl::Status& status) {
    return {.id = sequence.request.id, .finish = FinishReason::kError, .error = std::string(status.message())};
  }

  void Retire(RequestId id) {
    pool_.Release(running_.at(id)->blocks);
    running_.erase(id);
  }

  void UpdateGauges() {
    metrics_.num_requests_running = static_cast<int64_t>(running_.size());
    metrics_.num_requests_waiting = static_cast<int64_t>(waiting_.size());
    metrics_.kv_blocks_used = pool_.num_blocks() - pool_.num_free();
  }

  EngineSnapshot Snapshot() const {
    EngineSnapshot snapshot{.num_blocks = pool_.num_blocks(), .num_free_blocks = pool_.num_free(), .max_sequences = config_.max_sequences};
    for (const SequenceMap* map : {&running_, &waiting_}) {
      for (const auto& [id, sequence] : *map) {
        snapshot.sequences.push_back({.id = id,
                                      .running = map == &running_,
                                      .num_tokens = sequence->num_tokens(),
                                      .num_computed = sequence->num_computed,
                                      .max_model_len = config_.max_model_len,
                                      .blocks = sequence->blocks.blocks});
      }
    }
    return snapshot;
  }

  const EngineConfig config_;
  const int64_t vocab_size_;
  BlockPool pool_;
  ModelExecutor executor_;
  SequenceMap running_, waiting_;
  SamplerScratch scratch_;
  EngineMetrics metrics_;
  uint64_t next_arrival_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(DecoderModel& model, const EngineConfig& config) {
  EngineConfig resolved = config;
  const bool context_of_model = resolved.max_model_len <= 0;
  if (context_of_model) resolved.max_model_len = model.config().max_position_embeddings;
  if (resolved.max_model_len > model.config().max_position_embeddings) {
    return UsageError("max_model_len: expected at most max_position_embeddings = ", model.config().max_position_embeddings, ", found ",
                      resolved.max_model_len);
  }
  KvCacheSpec spec = model.KvSpecAs(resolved.kv_cache_dtype, 1);
  resolved.kv_cache_dtype = spec.dtype;
  if (resolved.kv_blocks <= 0) {
    const int64_t bytes_per_block = spec.bytes_per_token() * kBlockSizeTokens;
    resolved.kv_blocks = std::min(resolved.kv_cache_bytes / bytes_per_block,
                                  resolved.max_sequences * BlockPool::BlocksForTokens(resolved.max_model_len));
  }
  if (resolved.kv_blocks < 1 || resolved.max_batch_tokens < 1 || resolved.max_sequences < 1 || resolved.prefill_chunk < 1) {
    return UsageError("engine: expected at least one KV block, batch token, sequence and chunk token, found ", resolved.kv_blocks, ", ",
                      resolved.max_batch_tokens, ", ", resolved.max_sequences, ", ", resolved.prefill_chunk);
  }
  if (context_of_model) resolved.max_model_len = std::min(resolved.max_model_len, resolved.kv_blocks * kBlockSizeTokens);
  spec.num_blocks = resolved.kv_blocks;
  ASSIGN_OR_RETURN(KvStorage storage, KvStorage::Create(spec));
  return std::make_unique<EngineImpl>(model, resolved, std::move(storage));
}

}  // namespace pith
