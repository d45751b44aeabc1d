// One prompt to one answer in the terminal: drives an Engine of its own until the request is done. Shared by run and chat.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/model_bundle.h"
#include "engine/engine.h"
#include "sampling/sampling_params.h"

namespace CLI {
class App;
}

namespace pith {

struct GenerationFlags {
  double temperature = 0.0, top_p = 1.0, min_p = 0.0, repetition_penalty = 1.0, presence_penalty = 0.0, frequency_penalty = 0.0;
  int top_k = -1;
  uint64_t seed = 0;
  int64_t max_tokens = 128;
  bool ignore_eos = false;
  int64_t prefill_chunk = 512;
  std::optional<KvDtype> kv_cache_dtype;  // nullopt: the model's own
};

void AddGenerationFlags(CLI::App& app, GenerationFlags& flags);

// What the engine would say of the flags, to be asked before weights are loaded. Errors: kInvalidArgument.
absl::Status CheckGenerationFlags(const GenerationFlags& flags, const ModelBundle& bundle);

struct Generation {
  std::vector<int32_t> tokens;
  std::string text;
  FinishReason finish = FinishReason::kNone;
  int64_t prompt_tokens = 0;
  double ttft_ms = 0;  // prompt handed to the engine -> first token
  double tpot_ms = 0;  // mean time per token after the first; 0 with fewer than two
};

// Calls on_text with every piece of text as it comes (valid UTF-8 on its own). Errors: those of the engine; kCancelled on Ctrl-C.
absl::StatusOr<Generation> Generate(const ModelBundle& bundle, Engine& engine, std::vector<int32_t> prompt, const GenerationFlags& flags,
                                    const std::function<absl::Status(absl::string_view)>& on_text);

// An engine for one sequence: KV cache for `max_model_len` tokens (0: the model's maximum, at most 8192).
absl::StatusOr<std::unique_ptr<Engine>> MakeSingleSequenceEngine(DecoderModel& model, int64_t max_model_len, const GenerationFlags& flags);

OrderedJson ToJson(const Generation& generation);
absl::string_view FinishReasonName(FinishReason reason);

}  // namespace pith
