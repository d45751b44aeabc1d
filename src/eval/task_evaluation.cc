#include "eval/task_evaluation.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <numeric>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "eval/tasks/likelihood_score.h"
#include "eval/tasks/task_score.h"
#include "tokenizer/prompt_encoding.h"

namespace pith {
namespace {

// Templates that write the date write this one: 2025-01-01. An evaluation must give the same tomorrow.
constexpr int64_t kTemplateTime = 1735689600;

AnswerOptions OptionsFor(const AnsweringModel& model, const TaskEvaluationOptions& options) {
  return {.sampling = options.sampling,
          .samples = options.sampling.greedy() ? 1 : options.samples,
          .stop_token_ids = model.stop_token_ids,
          .model_id = model.id,
          .store = options.store,
          .reuse = options.reuse,
          .progress = options.progress};
}

// The tokens of `continuation` are those that the prompt alone does not have. Both are encoded as one text, for its first token may begin
// with the delimiter (lm-evaluation-harness, TemplateLM._encode_pair).
absl::StatusOr<LikelihoodQuestion> MakeLikelihoodQuestion(const AnsweringModel& model, const TaskItem& item,
                                                          const std::string& continuation) {
  ASSIGN_OR_RETURN(std::vector<int32_t> prompt, model.tokenizer->Encode(item.prompt));
  ASSIGN_OR_RETURN(const std::vector<int32_t> whole, model.tokenizer->Encode(absl::StrCat(item.prompt, item.delimiter, continuation)));
  if (whole.size() < 2)
    return UsageError("expected a prompt and a continuation of at least one token each, found ", whole.size(), " in all");
  const size_t split = std::clamp<size_t>(prompt.size(), 1, whole.size() - 1);
  return LikelihoodQuestion{.id = item.id,
                            .prompt = {whole.begin(), whole.begin() + static_cast<int64_t>(split)},
                            .continuation = {whole.begin() + static_cast<int64_t>(split), whole.end()}};
}

// Continuations of an item whose likelihood counts.
const std::vector<std::string>& ContinuationsOf(const TaskItem& item) {
  return item.match == MatchKind::kChoice ? item.choices : item.answers;
}

absl::Status EvaluateByLikelihood(const AnsweringModel& model, absl::Span<const TaskItem> items, const std::vector<size_t>& chosen,
                                  const TaskEvaluationOptions& options, std::vector<ItemResult>& results) {
  std::vector<LikelihoodQuestion> questions;
  for (const size_t i : chosen) {
    for (const std::string& continuation : ContinuationsOf(items[i])) {
      auto question = MakeLikelihoodQuestion(model, items[i], continuation);
      if (!question.ok()) return Annotate(question.status(), items[i].id);
      questions.push_back(*std::move(question));
    }
  }
  ASSIGN_OR_RETURN(const std::vector<ContinuationLikelihood> likelihoods,
                   ScoreContinuations(*model.engine, questions, OptionsFor(model, options)));
  size_t next = 0;
  for (const size_t i : chosen) {
    const absl::Span<const ContinuationLikelihood> own(&likelihoods[next], ContinuationsOf(items[i]).size());
    next += own.size();
    if (items[i].match == MatchKind::kChoice) {
      ASSIGN_OR_RETURN(const ChoiceScore score, ScoreChoice(items[i], own));
      results[i].scores = {score.correct_per_character ? 1.0 : 0.0};
    } else {
      results[i].scores = {std::any_of(own.begin(), own.end(), [](const ContinuationLikelihood& l) { return l.greedy; }) ? 1.0 : 0.0};
    }
  }
  return absl::OkStatus();
}

// Scores answers on several threads, for unit tests wait for their processes. The first error, by the order of answers, is returned.
absl::Status ScoreTexts(absl::Span<const TaskItem> items, const std::vector<size_t>& chosen, const TaskEvaluationOptions& options,
                        std::vector<ItemResult>& results) {
  std::vector<std::pair<size_t, size_t>> work;  // item, sample
  for (const size_t i : chosen) {
    results[i].scores.assign(results[i].texts.size(), 0);
    for (size_t sample = 0; sample < results[i].texts.size(); ++sample) work.emplace_back(i, sample);
  }
  std::vector<absl::Status> status(work.size());
  std::atomic<size_t> next{0};
  const auto score_some = [&] {
    for (size_t w = next++; w < work.size(); w = next++) {
      const auto [i, sample] = work[w];
      const auto score = ScoreAnswer(items[i], results[i].texts[sample], options.sandbox);
      status[w] = Annotate(score.status(), items[i].id);
      if (score.ok()) results[i].scores[sample] = score->value;
    }
  };
  std::vector<std::thread> threads;
  for (int t = 1; t < options.scoring_threads; ++t) threads.emplace_back(score_some);
  score_some();
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& one : status) RETURN_IF_ERROR(one);
  return absl::OkStatus();
}

absl::Status EvaluateByGeneration(const AnsweringModel& model, absl::Span<const TaskItem> items, const std::vector<size_t>& chosen,
                                  const TaskEvaluationOptions& options, std::vector<ItemResult>& results) {
  std::vector<GenerationQuestion> questions;
  for (const size_t i : chosen) {
    const TaskItem& item = items[i];
    auto prompt = PromptTokens(model, item);
    if (!prompt.ok()) return Annotate(prompt.status(), item.id);
    const bool conversation = model.chat_template != nullptr && !item.messages.empty();
    questions.push_back({.id = absl::StrCat(item.task, "/", item.id),
                         .prompt = *std::move(prompt),
                         .stop = conversation ? std::vector<std::string>() : item.stop,
                         .max_tokens = options.max_tokens > 0 ? options.max_tokens : item.max_tokens});
  }
  ASSIGN_OR_RETURN(auto answers, GenerateAnswers(*model.engine, *model.tokenizer, questions, OptionsFor(model, options)));
  for (size_t q = 0; q < chosen.size(); ++q) {
    ItemResult& result = results[chosen[q]];
    for (GeneratedAnswer& answer : answers[q]) {
      result.texts.push_back(std::move(answer.text));
      result.cut_off += answer.cut_off ? 1 : 0;
    }
  }
  return ScoreTexts(items, chosen, options, results);
}

}  // namespace

double ItemResult::Mean() const {
  return scores.empty() ? 0 : std::accumulate(scores.begin(), scores.end(), 0.0) / static_cast<double>(scores.size());
}

absl::StatusOr<std::vector<int32_t>> PromptTokens(const AnsweringModel& model, const TaskItem& item) {
  if (model.chat_template == nullptr || item.messages.empty()) return model.tokenizer->Encode(item.prompt);
  ChatTemplateInputs inputs{.messages = OrderedJson::array(), .bos_token = model.bos_token, .eos_token = model.eos_token};
  inputs.now_unix_seconds = kTemplateTime;
  for (const ChatMessage& message : item.messages) inputs.messages.push_back({{"role", message.role}, {"content", message.content}});
  return EncodeChat(*model.tokenizer, *model.chat_template, inputs);
}

absl::StatusOr<std::vector<ItemResult>> EvaluateItems(const AnsweringModel& model, absl::Span<const TaskItem> items,
                                                      const TaskEvaluationOptions& options) {
  std::vector<size_t> generated, scored;
  for (size_t i = 0; i < items.size(); ++i) (IsScoredByLikelihood(items[i].match) ? scored : generated).push_back(i);
  std::vector<ItemResult> results(items.size());
  if (!scored.empty()) RETURN_IF_ERROR(EvaluateByLikelihood(model, items, scored, options, results));
  if (!generated.empty()) {
    TaskEvaluationOptions rest = options;
    int64_t before = 0;
    for (const size_t i : scored) before += static_cast<int64_t>(ContinuationsOf(items[i]).size());
    if (options.progress) rest.progress = [&, before](int64_t done) { return options.progress(before + done); };
    RETURN_IF_ERROR(EvaluateByGeneration(model, items, generated, rest, results));
  }
  return results;
}

std::vector<SliceComparison> CompareItems(absl::Span<const TaskItem> items, absl::Span<const ItemResult> reference,
                                          absl::Span<const ItemResult> model, const BootstrapOptions& options) {
  std::vector<ItemOutcome> all;
  std::map<std::string, std::vector<ItemOutcome>> slices;
  for (size_t i = 0; i < items.size(); ++i) {
    const ItemOutcome outcome = {.reference = reference[i].Mean(), .model = model[i].Mean()};
    all.push_back(outcome);
    slices[items[i].slice].push_back(outcome);
  }
  std::vector<SliceComparison> comparisons = {{"all", CompareOutcomes(all, options)}};
  for (const auto& [name, outcomes] : slices) comparisons.push_back({name, CompareOutcomes(outcomes, options)});
  return comparisons;
}

}  // namespace pith
