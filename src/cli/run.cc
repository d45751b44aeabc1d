#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "base/progress.h"
#include "base/status.h"
#include "cli/activations_flag.h"
#include "cli/commands.h"
#include "cli/generation.h"
#include "cli/model_bundle.h"
#include "cli/prepack_cache_flag.h"

namespace pith {
namespace {

struct RunFlags {
  WeightOnlyActivation activations;
  std::string prepack_cache;
  std::string model, system;
  std::optional<std::string> prompt;  // absent: standard input
  bool chat = false;
  int64_t context = 0;
  GenerationFlags generation;
};

// All of standard input, at most 64 MiB.
absl::StatusOr<std::string> ReadStandardInput() {
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const size_t n = std::fread(buffer, 1, sizeof(buffer), stdin);
    if (n == 0) break;
    text.append(buffer, n);
    if (text.size() > (size_t{64} << 20)) return UsageError("standard input: expected a prompt of at most 64 MiB");
  }
  if (std::ferror(stdin) != 0) return IoError("standard input: ", std::strerror(errno));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

absl::StatusOr<std::vector<int32_t>> EncodePrompt(const ModelBundle& bundle, const RunFlags& options, const std::string& prompt) {
  if (!options.chat) return bundle.tokenizer->Encode(prompt);
  OrderedJson messages = OrderedJson::array();
  if (!options.system.empty()) messages.push_back({{"role", "system"}, {"content", options.system}});
  messages.push_back({{"role", "user"}, {"content", prompt}});
  return EncodeChat(bundle, messages);
}

// Tokens of prompt and answer together at most. Errors: kInvalidArgument when the prompt alone has more.
absl::StatusOr<int64_t> ContextOf(const ModelBundle& bundle, const RunFlags& options, int64_t prompt) {
  ASSIGN_OR_RETURN(const DecoderConfig config, ReadDecoderConfig(bundle));
  if (prompt > config.max_position_embeddings) {
    return UsageError("prompt: expected at most ", config.max_position_embeddings, " tokens (max_position_embeddings), found ", prompt);
  }
  if (options.context > 0 && prompt > options.context) {
    return UsageError("--ctx-size: expected at least ", prompt, ", the tokens of the prompt, found ", options.context);
  }
  return std::min(options.context > 0 ? options.context : prompt + options.generation.max_tokens, config.max_position_embeddings);
}

absl::Status RunRun(const RunFlags& options, const CommonOptions& common) {
  if (!options.system.empty() && !options.chat) return UsageError("--system: expected together with --chat, found alone");
  std::string prompt = options.prompt.value_or("");
  if (!options.prompt.has_value()) {
    if (isatty(STDIN_FILENO)) return UsageError("prompt: expected an argument or text on standard input, found neither");
    ASSIGN_OR_RETURN(prompt, ReadStandardInput());
  }
  ThreadPool pool(common.threads);
  ASSIGN_OR_RETURN(ModelBundle bundle, LoadModelFiles(options.model));
  RETURN_IF_ERROR(CheckGenerationFlags(options.generation, bundle));
  ASSIGN_OR_RETURN(std::vector<int32_t> ids, EncodePrompt(bundle, options, prompt));
  if (ids.empty()) return UsageError("prompt: expected at least one token, found none");
  const auto prompt_tokens = static_cast<int64_t>(ids.size());
  ASSIGN_OR_RETURN(const int64_t limit, ContextOf(bundle, options, prompt_tokens));
  RETURN_IF_ERROR(LoadWeights(bundle, pool, options.activations, options.prepack_cache));
  ASSIGN_OR_RETURN(const auto engine, MakeSingleSequenceEngine(*bundle.model, limit, options.generation));
  GenerationFlags flags = options.generation;
  flags.max_tokens = std::min(flags.max_tokens, limit - prompt_tokens);
  const bool print = !common.json_to_stdout();
  if (print && !options.chat) RETURN_IF_ERROR(PrintResult(prompt));
  ASSIGN_OR_RETURN(const Generation generation, Generate(bundle, *engine, std::move(ids), flags, [&](absl::string_view piece) {
                     return print ? PrintResult(piece) : absl::OkStatus();
                   }));
  if (print) RETURN_IF_ERROR(PrintResult("\n"));
  if (ProgressEnabled()) {
    std::fprintf(stderr, "%d prompt tokens, %zu generated (%s), TTFT %.1f ms, TPOT %.1f ms\n", static_cast<int>(generation.prompt_tokens),
                 generation.tokens.size(), std::string(FinishReasonName(generation.finish)).c_str(), generation.ttft_ms,
                 generation.tpot_ms);
  }
  OrderedJson result = ToJson(generation);
  result["prompt"] = prompt;
  return WriteJsonResult(common, result);
}

}  // namespace

CommandFunction SetupRun(CLI::App& app) {
  auto options = std::make_shared<RunFlags>();
  app.add_option("model", options->model, "model: a directory, a .gguf file, or ORG/NAME that pith pull fetched")->required();
  app.add_option("prompt", options->prompt, "text to complete; standard input when absent");
  app.add_flag("--chat", options->chat, "put the prompt through the model's chat template as a user message");
  app.add_option("--system", options->system, "system message, with --chat");
  app.add_option("-c,--ctx-size", options->context, "tokens of prompt and answer together at most")->check(CLI::Range(1, 1 << 20));
  AddGenerationFlags(app, options->generation);
  AddActivationsFlag(app, options->activations);
  AddPrepackCacheFlag(app, options->prepack_cache);
  return [options](const CommonOptions& common) { return RunRun(*options, common); };
}

}  // namespace pith
