#include "eval/answer_runner.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/status.h"
#include "tokenizer/text_generation.h"

namespace pith {
namespace {

constexpr double kLowestLogprob = -1e30;  // of a token that cannot be: JSON has no infinity

// What one request of the engine is for, and how its end becomes a value of the store.
class Task {
 public:
  virtual ~Task() = default;
  // False: the request has said enough and can be aborted.
  virtual absl::StatusOr<bool> Take(const RequestOutput& output) = 0;
  virtual Json Result() = 0;
};

// Runs `count` tasks: those that the store knows are read from it, the others go through the engine, so many at a time that it is never
// idle. results[i] is what task i gave.
class TaskRun {
 public:
  TaskRun(Engine& engine, const AnswerOptions& options) : engine_(engine), options_(options) {}

  // make(i, request) fills in the request of task i, without its id; key(i) names its result; name(i) names it in errors.
  absl::StatusOr<std::vector<Json>> Run(int64_t count, const std::function<std::string(int64_t)>& key,
                                        const std::function<std::string(int64_t)>& name,
                                        const std::function<std::unique_ptr<Task>(int64_t, Request*)>& make) {
    results_.resize(static_cast<size_t>(count));
    const int64_t most = 2 * engine_.config().max_sequences;  // the next ones wait in the engine, so that a free place is taken at once
    for (int64_t next = 0; next < count || engine_.HasWork();) {
      while (next < count && static_cast<int64_t>(live_.size()) < most) {
        const int64_t index = next++;
        std::string stored_as = key(index);
        ASSIGN_OR_RETURN(const bool known, Known(index, stored_as));
        if (known) continue;
        Request request{.id = static_cast<RequestId>(index)};
        auto task = make(index, &request);
        const absl::Status added = engine_.Add(std::move(request));
        if (!added.ok()) return Annotate(added, name(index));
        live_[static_cast<RequestId>(index)] = {std::move(task), std::move(stored_as)};
      }
      if (!engine_.HasWork()) continue;
      ASSIGN_OR_RETURN(const std::vector<RequestOutput> outputs, engine_.Step());
      for (const RequestOutput& output : outputs) {
        const absl::Status taken = Take(output);
        if (!taken.ok()) return Annotate(taken, name(static_cast<int64_t>(output.id)));
      }
      // A step without outputs (a long prompt) is a moment to notice an interruption too.
      if (options_.progress) RETURN_IF_ERROR(options_.progress(done_));
    }
    return std::move(results_);
  }

 private:
  struct Live {
    std::unique_ptr<Task> task;
    std::string key;
  };

  absl::StatusOr<bool> Known(int64_t index, const std::string& key) {
    if (options_.store == nullptr || !options_.reuse) return false;
    ASSIGN_OR_RETURN(std::optional<Json> stored, options_.store->Find(key));
    if (!stored.has_value()) return false;
    results_[static_cast<size_t>(index)] = *std::move(stored);
    ++done_;
    return true;
  }

  absl::Status Take(const RequestOutput& output) {
    const auto live = live_.find(output.id);
    if (live == live_.end()) return absl::OkStatus();  // aborted, and its last tokens were already under way
    if (output.finish == FinishReason::kError) return BugError(output.error);
    ASSIGN_OR_RETURN(const bool go_on, live->second.task->Take(output));
    if (go_on && output.finish == FinishReason::kNone) return absl::OkStatus();
    if (output.finish == FinishReason::kNone) engine_.Abort(output.id);
    Json result = live->second.task->Result();
    if (options_.store != nullptr) RETURN_IF_ERROR(options_.store->Put(live->second.key, result));
    results_[output.id] = std::move(result);
    live_.erase(live);
    ++done_;
    return absl::OkStatus();
  }

  Engine& engine_;
  const AnswerOptions& options_;
  std::vector<Json> results_;
  std::map<RequestId, Live> live_;
  int64_t done_ = 0;
};

class Generation : public Task {
 public:
  Generation(const Tokenizer& tokenizer, std::vector<std::string> stop) : text_(tokenizer, std::move(stop)) {}

  absl::StatusOr<bool> Take(const RequestOutput& output) override {
    for (const SampleResult& sample : output.tokens) {
      if (text_.stopped()) break;
      ++tokens_;
      if (sample.token != output.stop_token) shown_ += text_.Append(sample.token);
    }
    if (output.finish != FinishReason::kNone) {
      shown_ += text_.Finish();
      cut_off_ = output.finish == FinishReason::kLength && !text_.stopped();
    }
    return !text_.stopped();
  }
  Json Result() override { return {{"text", shown_}, {"tokens", tokens_}, {"cut_off", cut_off_}}; }

 private:
  TextGeneration text_;
  std::string shown_;
  int64_t tokens_ = 0;
  bool cut_off_ = false;
};

class Scoring : public Task {
 public:
  explicit Scoring(const LikelihoodQuestion& question) : question_(question) {}

  // Of prompt tokens 1..n-1, in pieces: those of the continuation are the last.
  absl::StatusOr<bool> Take(const RequestOutput& output) override {
    for (const SampleResult& token : output.prompt_logprobs) {
      if (++num_tokens_ < question_.prompt.size()) continue;
      likelihood_.log_probability += std::max<double>(token.logprob, kLowestLogprob);
      if (token.top_logprobs.empty() || token.top_logprobs[0].token != token.token) likelihood_.greedy = false;
    }
    if (output.finish != FinishReason::kNone && num_tokens_ + 1 != question_.prompt.size() + question_.continuation.size())
      return BugError("expected the logprobs of ", question_.prompt.size() + question_.continuation.size() - 1, " tokens, found ",
                      num_tokens_);
    return true;
  }
  Json Result() override { return {{"logprob", likelihood_.log_probability}, {"greedy", likelihood_.greedy}}; }

 private:
  const LikelihoodQuestion& question_;
  ContinuationLikelihood likelihood_{.greedy = true};
  size_t num_tokens_ = 0;  // whose logprobs have come
};

// One name for everything a result depends on; changes of the keys' meaning count the version up.
std::string KeyOf(absl::string_view kind, const AnswerOptions& options, const Json& rest) {
  return Sha256Hex(DumpJson(Json{{"version", 1}, {"kind", kind}, {"model", options.model_id}, {"rest", rest}}));
}

Json SamplingJson(const SamplingParams& sampling) {
  return {{"temperature", sampling.temperature},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"min_p", sampling.min_p},
          {"presence_penalty", sampling.presence_penalty},
          {"frequency_penalty", sampling.frequency_penalty},
          {"repetition_penalty", sampling.repetition_penalty},
          {"logit_bias", sampling.logit_bias},
          {"min_tokens", sampling.min_tokens},
          {"ignore_eos", sampling.ignore_eos}};
}

}  // namespace

uint64_t SampleSeed(uint64_t seed, absl::string_view question, int64_t sample) {
  const std::string digest = Sha256Hex(absl::StrCat(seed, "/", sample, "/", question));
  return std::stoull(digest.substr(0, 16), nullptr, 16);
}

absl::StatusOr<std::vector<std::vector<GeneratedAnswer>>> GenerateAnswers(Engine& engine, const Tokenizer& tokenizer,
                                                                          absl::Span<const GenerationQuestion> questions,
                                                                          const AnswerOptions& options) {
  const int64_t samples = options.samples, count = static_cast<int64_t>(questions.size()) * samples;
  const auto question = [&](int64_t i) -> const GenerationQuestion& { return questions[static_cast<size_t>(i / samples)]; };
  const auto seed = [&](int64_t i) { return SampleSeed(options.sampling.seed, question(i).id, i % samples); };
  const auto key = [&](int64_t i) {
    const GenerationQuestion& q = question(i);
    return KeyOf("generation", options,
                 {q.id, q.prompt, q.stop, q.max_tokens, options.stop_token_ids, SamplingJson(options.sampling), seed(i)});
  };
  const auto make = [&](int64_t i, Request* request) -> std::unique_ptr<Task> {
    request->prompt = question(i).prompt;
    request->sampling = options.sampling;
    request->sampling.seed = seed(i);
    request->sampling.logprobs = -1;
    request->max_tokens = question(i).max_tokens;
    request->stop_token_ids = options.stop_token_ids;
    return std::make_unique<Generation>(tokenizer, question(i).stop);
  };
  const auto name = [&](int64_t i) { return question(i).id; };
  ASSIGN_OR_RETURN(const std::vector<Json> results, TaskRun(engine, options).Run(count, key, name, make));
  std::vector<std::vector<GeneratedAnswer>> answers(questions.size());
  for (int64_t i = 0; i < count; ++i) {
    const Json& result = results[static_cast<size_t>(i)];
    GeneratedAnswer answer;
    ASSIGN_OR_RETURN(answer.text, GetString(result, "text"));
    ASSIGN_OR_RETURN(answer.tokens, GetInt(result, "tokens", 0, int64_t{1} << 40));
    ASSIGN_OR_RETURN(answer.cut_off, GetBool(result, "cut_off", false));
    answers[static_cast<size_t>(i / samples)].push_back(std::move(answer));
  }
  return answers;
}

absl::StatusOr<std::vector<ContinuationLikelihood>> ScoreContinuations(Engine& engine, absl::Span<const LikelihoodQuestion> questions,
                                                                       const AnswerOptions& options) {
  const auto question = [&](int64_t i) -> const LikelihoodQuestion& { return questions[static_cast<size_t>(i)]; };
  const auto key = [&](int64_t i) { return KeyOf("likelihood", options, {question(i).prompt, question(i).continuation}); };
  const auto make = [&](int64_t i, Request* request) -> std::unique_ptr<Task> {
    request->prompt = question(i).prompt;
    request->prompt.insert(request->prompt.end(), question(i).continuation.begin(), question(i).continuation.end());
    request->max_tokens = 0;
    request->prompt_logprobs = true;
    request->sampling.logprobs = 1;
    return std::make_unique<Scoring>(question(i));
  };
  const auto name = [&](int64_t i) { return question(i).id; };
  ASSIGN_OR_RETURN(const std::vector<Json> results, TaskRun(engine, options).Run(static_cast<int64_t>(questions.size()), key, name, make));
  std::vector<ContinuationLikelihood> likelihoods;
  for (const Json& result : results) {
    ContinuationLikelihood likelihood;
    ASSIGN_OR_RETURN(likelihood.log_probability, GetDouble(result, "logprob", -1e300, 0));
    ASSIGN_OR_RETURN(likelihood.greedy, GetBool(result, "greedy", false));
    likelihoods.push_back(likelihood);
  }
  return likelihoods;
}

}  // namespace pith
