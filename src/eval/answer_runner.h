// Lets a model answer many questions: generated text, or the likelihood of given continuations. All go through the engine together
// (continuous batching); what is finished is kept in a store, so that an interrupted run goes on where it ended.
//
// An answer is a pure function of the model, the question, the sampling settings and the sample's number: the seed of a sample is made from
// them, never from the order or the company it ran in. Two models asked with the same settings are thereby paired.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/engine.h"
#include "eval/result_store.h"
#include "eval/tasks/likelihood_score.h"
#include "tokenizer/tokenizer.h"

namespace pith {

struct GenerationQuestion {
  std::string id;               // unique among the questions that share a seed: "HumanEval/0"
  std::vector<int32_t> prompt;  // at least one token
  std::vector<std::string> stop;
  int64_t max_tokens = 256;
};

struct GeneratedAnswer {
  std::string text;  // before the first stop string; special tokens left out
  int64_t tokens = 0;
  bool cut_off = false;  // by max_tokens

  friend bool operator==(const GeneratedAnswer&, const GeneratedAnswer&) = default;
};

struct AnswerOptions {
  SamplingParams sampling;  // its seed is the seed of the run; logprobs are not used
  int64_t samples = 1;      // answers per question; with greedy sampling they are equal, so that one suffices
  std::vector<int32_t> stop_token_ids;
  // What the answers depend on besides: fingerprint of the model, data path, KV cache format. Part of the keys in the store.
  std::string model_id;
  ResultStore* store = nullptr;  // nullptr: nothing is kept
  bool reuse = true;             // what the store has is taken; false: everything is asked anew, and replaces it
  // Called after each answer with those that are done, those taken from the store among them; an error ends the run. May be empty.
  std::function<absl::Status(int64_t done)> progress;
};

// answers[question][sample]. Errors: those of Engine::Add (question named) and of the store; kInternal when the model fails.
absl::StatusOr<std::vector<std::vector<GeneratedAnswer>>> GenerateAnswers(Engine& engine, const Tokenizer& tokenizer,
                                                                          absl::Span<const GenerationQuestion> questions,
                                                                          const AnswerOptions& options);

struct LikelihoodQuestion {
  std::string id;
  std::vector<int32_t> prompt;        // at least one token
  std::vector<int32_t> continuation;  // at least one token
};

// One per question. Of `options` the model, the store and the progress matter. Errors: as of GenerateAnswers.
absl::StatusOr<std::vector<ContinuationLikelihood>> ScoreContinuations(Engine& engine, absl::Span<const LikelihoodQuestion> questions,
                                                                       const AnswerOptions& options);

// The seed of one sample of one question.
uint64_t SampleSeed(uint64_t seed, absl::string_view question, int64_t sample);

}  // namespace pith
