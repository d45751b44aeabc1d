#include "cli/generation.h"

#include <chrono>

#include "CLI/CLI.hpp"
#include "base/interrupt.h"
#include "base/status.h"
#include "cli/kv_cache_flag.h"

namespace pith {
namespace {

using Clock = std::chrono::steady_clock;

double MillisecondsBetween(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double, std::milli>(end - begin).count();
}

SamplingParams MakeSampling(const GenerationFlags& flags) {
  SamplingParams sampling;
  sampling.temperature = static_cast<float>(flags.temperature);
  sampling.top_p = static_cast<float>(flags.top_p);
  sampling.min_p = static_cast<float>(flags.min_p);
  sampling.top_k = flags.top_k;
  sampling.repetition_penalty = static_cast<float>(flags.repetition_penalty);
  sampling.presence_penalty = static_cast<float>(flags.presence_penalty);
  sampling.frequency_penalty = static_cast<float>(flags.frequency_penalty);
  sampling.seed = flags.seed;
  sampling.ignore_eos = flags.ignore_eos;
  return sampling;
}

Request MakeRequest(const ModelBundle& bundle, std::vector<int32_t> prompt, const GenerationFlags& flags) {
  Request request;
  request.id = 1;
  request.prompt = std::move(prompt);
  request.sampling = MakeSampling(flags);
  request.max_tokens = flags.max_tokens;
  request.stop_token_ids = bundle.stop_token_ids;
  return request;
}

}  // namespace

void AddGenerationFlags(CLI::App& app, GenerationFlags& flags) {
  app.add_option("--temperature,--temp", flags.temperature, "0 takes the most likely token")
      ->check(CLI::Range(0.0, 2.0))
      ->capture_default_str();
  app.add_option("--top-k", flags.top_k, "keep the k most likely tokens; -1: all")->capture_default_str();
  app.add_option("--top-p", flags.top_p, "keep the smallest set of tokens of this total probability")->capture_default_str();
  app.add_option("--min-p", flags.min_p, "drop tokens below this share of the most likely one")->capture_default_str();
  app.add_option("--repetition-penalty", flags.repetition_penalty, "divide the logits of tokens seen before")->capture_default_str();
  app.add_option("--presence-penalty", flags.presence_penalty, "subtract from the logits of tokens already generated")
      ->capture_default_str();
  app.add_option("--frequency-penalty", flags.frequency_penalty, "subtract once per occurrence")->capture_default_str();
  AddSeedFlag(app, flags.seed, "the same seed gives the same tokens");
  app.add_option("-n,--max-tokens", flags.max_tokens, "tokens to generate at most")->check(CLI::Range(0, 1 << 20))->capture_default_str();
  app.add_flag("--ignore-eos", flags.ignore_eos, "go on after an end-of-sequence token");
  app.add_option("--prefill-chunk", flags.prefill_chunk, "prompt tokens per forward pass (never changes the result)")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  AddKvCacheDtypeFlag(app, flags.kv_cache_dtype);
}

absl::Status CheckGenerationFlags(const GenerationFlags& flags, const ModelBundle& bundle) {
  return Validate(MakeSampling(flags), bundle.tokenizer->vocab_size());
}

absl::StatusOr<std::unique_ptr<Engine>> MakeSingleSequenceEngine(DecoderModel& model, int64_t max_model_len, const GenerationFlags& flags) {
  EngineConfig config;
  config.max_model_len = max_model_len > 0 ? max_model_len : std::min<int64_t>(model.config().max_position_embeddings, 8192);
  config.max_sequences = 1;
  config.max_batch_tokens = flags.prefill_chunk;
  config.prefill_chunk = flags.prefill_chunk;
  config.kv_cache_dtype = flags.kv_cache_dtype;
  config.kv_blocks = BlockPool::BlocksForTokens(config.max_model_len);
  return Engine::Create(model, config);
}

absl::StatusOr<Generation> Generate(const ModelBundle& bundle, Engine& engine, std::vector<int32_t> prompt, const GenerationFlags& flags,
                                    const std::function<absl::Status(absl::string_view)>& on_text) {
  Generation generation;
  generation.prompt_tokens = static_cast<int64_t>(prompt.size());
  StreamDetokenizer detokenizer(*bundle.tokenizer);
  const auto emit = [&](const std::string& piece) {
    generation.text += piece;
    return piece.empty() ? absl::OkStatus() : on_text(piece);
  };
  const Clock::time_point start = Clock::now();
  Clock::time_point first = start;
  RETURN_IF_ERROR(engine.Add(MakeRequest(bundle, std::move(prompt), flags)));
  while (engine.HasWork()) {
    if (absl::Status interrupted = CheckInterrupted(); !interrupted.ok()) {
      engine.Abort(1);
      return interrupted;
    }
    ASSIGN_OR_RETURN(const std::vector<RequestOutput> outputs, engine.Step());
    for (const RequestOutput& output : outputs) {
      for (const SampleResult& sample : output.tokens) {
        if (generation.tokens.empty()) first = Clock::now();
        generation.tokens.push_back(sample.token);
        if (sample.token != output.stop_token) RETURN_IF_ERROR(emit(detokenizer.Append(sample.token)));
      }
      if (output.finish == FinishReason::kError) return BugError(output.error);
      if (output.finish != FinishReason::kNone) generation.finish = output.finish;
    }
  }
  RETURN_IF_ERROR(emit(detokenizer.Finish()));
  const auto count = static_cast<double>(generation.tokens.size());
  generation.ttft_ms = MillisecondsBetween(start, first);
  if (count > 1) generation.tpot_ms = MillisecondsBetween(first, Clock::now()) / (count - 1);
  return generation;
}

absl::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone: return "none";
    case FinishReason::kStop: return "stop";
    case FinishReason::kLength: return "length";
    case FinishReason::kAborted: return "abort";
    case FinishReason::kError: return "error";
  }
  return "error";
}

OrderedJson ToJson(const Generation& generation) {
  return {{"text", generation.text},
          {"tokens", generation.tokens},
          {"finish_reason", std::string(FinishReasonName(generation.finish))},
          {"prompt_tokens", generation.prompt_tokens},
          {"completion_tokens", generation.tokens.size()},
          {"ttft_ms", generation.ttft_ms},
          {"tpot_ms", generation.tpot_ms}};
}

}  // namespace pith
