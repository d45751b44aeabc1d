#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "CLI/CLI.hpp"
#include "base/progress.h"
#include "base/status.h"
#include "cli/activations_flag.h"
#include "cli/commands.h"
#include "cli/generation.h"
#include "cli/model_bundle.h"
#include "cli/prepack_cache_flag.h"

namespace pith {
namespace {

struct ChatFlags {
  WeightOnlyActivation activations;
  std::string prepack_cache;
  std::string model, system;
  int64_t context = 0;
  GenerationFlags generation{.temperature = 0.7, .max_tokens = 1024};
};

constexpr char kChatHelp[] =
    "/help      this list\n"
    "/clear     forget the conversation\n"
    "/exit      leave (also Ctrl-D)\n"
    "Ctrl-C     stop the answer; once more at the prompt: leave\n";

// The conversation so far, with the system message first when there is one.
OrderedJson FreshMessages(const ChatFlags& options) {
  OrderedJson messages = OrderedJson::array();
  if (!options.system.empty()) messages.push_back({{"role", "system"}, {"content", options.system}});
  return messages;
}

// One question and its answer. An interrupted answer is kept as far as it came.
absl::Status Answer(const ModelBundle& bundle, Engine& engine, const GenerationFlags& flags, OrderedJson& messages) {
  ASSIGN_OR_RETURN(std::vector<int32_t> prompt, EncodeChat(bundle, messages));
  const int64_t room = engine.config().max_model_len - static_cast<int64_t>(prompt.size());
  if (room <= 0)
    return UsageError("the conversation has ", prompt.size(), " tokens: expected at most ", engine.config().max_model_len,
                      "; /clear starts afresh");
  GenerationFlags limited = flags;
  limited.max_tokens = std::min(limited.max_tokens, room);
  std::string text;
  const absl::StatusOr<Generation> generation = Generate(bundle, engine, std::move(prompt), limited, [&](absl::string_view piece) {
    absl::StrAppend(&text, piece);
    return PrintResult(piece);
  });
  RETURN_IF_ERROR(PrintResult("\n"));
  messages.push_back({{"role", "assistant"}, {"content", text}});
  if (!generation.ok()) return generation.status();
  if (ProgressEnabled() && StderrIsTerminal()) {
    std::fprintf(stderr, "[%zu tokens, TTFT %.0f ms, TPOT %.1f ms]\n", generation->tokens.size(), generation->ttft_ms, generation->tpot_ms);
  }
  return absl::OkStatus();
}

absl::Status RunChat(const ChatFlags& options, const CommonOptions& common) {
  if (!common.json_path.empty()) return UsageError("--json: chat has no result object; use pith run --chat");
  ThreadPool pool(common.threads);
  ASSIGN_OR_RETURN(ModelBundle bundle, LoadModelFiles(options.model));
  RETURN_IF_ERROR(CheckGenerationFlags(options.generation, bundle));
  if (!bundle.chat_template.has_value()) return NotSupportedError(options.model, ": expected a model with a chat template, found none");
  RETURN_IF_ERROR(CheckContextSize(bundle, options.context));
  RETURN_IF_ERROR(LoadWeights(bundle, pool, options.activations, options.prepack_cache));
  ASSIGN_OR_RETURN(const auto engine, MakeSingleSequenceEngine(*bundle.model, options.context, options.generation));
  const bool interactive = isatty(STDIN_FILENO) == 1;
  if (interactive && !common.quiet) std::fputs("Type a message, or /help.\n", stderr);
  OrderedJson messages = FreshMessages(options);
  for (;;) {
    if (interactive) std::fputs("> ", stderr);
    std::string line;
    if (!std::getline(std::cin, line)) return InterruptSignal() != 0 ? CheckInterrupted() : absl::OkStatus();
    if (line == "/exit" || line == "/quit") return absl::OkStatus();
    if (line == "/help") {
      std::fputs(kChatHelp, stderr);
      continue;
    }
    if (line == "/clear") {
      messages = FreshMessages(options);
      continue;
    }
    if (line.empty()) continue;
    const size_t before = messages.size();
    messages.push_back({{"role", "user"}, {"content", line}});
    const absl::Status answered = Answer(bundle, *engine, options.generation, messages);
    if (absl::IsCancelled(answered) && interactive) {
      SetInterruptSignal(0);
      continue;
    }
    if (absl::IsInvalidArgument(answered) && interactive) {  // too long, or no text: the question is taken back
      std::fprintf(stderr, "%s\n", Printable(answered.message(), 1000).c_str());
      while (messages.size() > before) messages.erase(messages.size() - 1);
      continue;
    }
    RETURN_IF_ERROR(answered);
  }
}

}  // namespace

CommandFunction SetupChat(CLI::App& app) {
  auto options = std::make_shared<ChatFlags>();
  app.add_option("model", options->model, "model with a chat template: a directory, a .gguf file, or ORG/NAME that pith pull fetched")
      ->required();
  app.add_option("--system", options->system, "system message");
  app.add_option("-c,--ctx-size", options->context, "tokens of the whole conversation at most")->check(CLI::Range(1, 1 << 20));
  AddGenerationFlags(app, options->generation);
  AddActivationsFlag(app, options->activations);
  AddPrepackCacheFlag(app, options->prepack_cache);
  return [options](const CommonOptions& common) { return RunChat(*options, common); };
}

}  // namespace pith
