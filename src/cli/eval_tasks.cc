#include "cli/eval_tasks.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/status.h"
#include "engine/engine.h"
#include "eval/builtin_slices.h"
#include "eval/tasks/long_context.h"
#include "eval/tasks/task_file.h"

namespace pith {
namespace {

constexpr int64_t kSequencesAtOnce = 32;
constexpr int64_t kLongContextItems = 10;  // of each kind, unless --limit says fewer

std::string StorePath() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache != nullptr && *cache != '\0') return JoinPath(cache, "pith/eval.db");
  return JoinPath(home != nullptr ? home : ".", ".cache/pith/eval.db");
}

absl::Status AppendBuiltin(int64_t limit, std::vector<TaskItem>* items) {
  for (const BuiltinSlice& slice : BuiltinSlices()) {
    if (RecognizeTaskFormat(slice.rows).empty()) continue;  // running text
    ASSIGN_OR_RETURN(TaskFile file, ParseTaskFile(std::string(slice.file), slice.rows, {.limit = limit}));
    std::move(file.items.begin(), file.items.end(), std::back_inserter(*items));
  }
  return absl::OkStatus();
}

absl::Status AppendFile(const std::string& path, int64_t limit, std::vector<TaskItem>* items) {
  if (absl::EndsWith(path, ".txt") || absl::EndsWith(path, ".raw") || absl::EndsWith(path, ".utf8")) return absl::OkStatus();
  ASSIGN_OR_RETURN(TaskFile file, ReadTaskFile(path, {.limit = limit}));
  std::move(file.items.begin(), file.items.end(), std::back_inserter(*items));
  return absl::OkStatus();
}

// Of a file among others, which need not be one of questions. Compressed files are, or reading them says what is wrong.
absl::Status AppendFileOfFolder(const std::string& path, int64_t limit, std::vector<TaskItem>* items) {
  if (absl::EndsWith(path, ".jsonl.gz")) return AppendFile(path, limit, items);
  if (!absl::EndsWith(path, ".jsonl") && !absl::EndsWith(path, ".tsv")) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  if (RecognizeTaskFormat(content).empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(TaskFile file, ParseTaskFile(path, content, {.limit = limit}));
  std::move(file.items.begin(), file.items.end(), std::back_inserter(*items));
  return absl::OkStatus();
}

absl::Status AppendLongContext(int64_t limit, uint64_t seed, int64_t tokens, const Tokenizer& tokenizer, std::vector<TaskItem>* items) {
  const auto count = [&](absl::string_view text) {
    const auto ids = tokenizer.Encode(text, {.add_special_tokens = false});
    return ids.ok() ? static_cast<int64_t>(ids->size()) : 0;
  };
  for (const LongContextKind kind : {LongContextKind::kNeedle, LongContextKind::kMultiKeyNeedle, LongContextKind::kVariableTracking}) {
    ASSIGN_OR_RETURN(
        std::vector<TaskItem> generated,
        GenerateLongContext(
            {.kind = kind, .tokens = tokens, .items = limit > 0 ? std::min(limit, kLongContextItems) : kLongContextItems, .seed = seed},
            count));
    std::move(generated.begin(), generated.end(), std::back_inserter(*items));
  }
  return absl::OkStatus();
}

}  // namespace

void AddTaskFlags(CLI::App& app, TaskFlags& flags) {
  app.add_flag("--tasks", flags.tasks,
               "also put the questions of --data (or the built-in ones) to the models, at each --temperature (0 when none is given), and "
               "compare how many they answer");
  app.add_option("--samples", flags.samples, "answers per question at temperatures above 0")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--max-tokens", flags.max_tokens, "tokens of an answer at most; 0: as each task says")->check(CLI::Range(0, 1 << 20));
  app.add_option("--long-context", flags.long_context, "also ask generated questions about texts of this many tokens (0: none)")
      ->check(CLI::Range(0, 1 << 20));
  app.add_flag("--resume", flags.resume, "take answers that an earlier run with the same settings has left");
}

absl::StatusOr<std::vector<TaskItem>> LoadTaskItems(const std::string& data, int64_t limit, uint64_t seed, const TaskFlags& flags,
                                                    const Tokenizer& tokenizer) {
  std::vector<TaskItem> items;
  if (flags.tasks && data.empty()) {
    RETURN_IF_ERROR(AppendBuiltin(limit, &items));
  } else if (flags.tasks && IsDirectory(data)) {
    ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(data));
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      RETURN_IF_ERROR(AppendFileOfFolder(JoinPath(data, name), limit, &items));
    }
  } else if (flags.tasks) {
    RETURN_IF_ERROR(AppendFile(data, limit, &items));
  }
  if (flags.long_context > 0) RETURN_IF_ERROR(AppendLongContext(limit, seed, flags.long_context, tokenizer, &items));
  if (flags.tasks && items.empty())
    return UsageError("--tasks: expected questions in ", data, ", found none: docs/tasks.md lists the formats");
  return items;
}

absl::StatusOr<TaskRunner> TaskRunner::Create(std::vector<TaskItem> items, const TaskFlags& flags, uint64_t seed) {
  TaskRunner runner;
  runner.flags_ = flags;
  runner.seed_ = seed;
  if (std::any_of(items.begin(), items.end(), [](const TaskItem& item) { return item.match == MatchKind::kCode; })) {
    ASSIGN_OR_RETURN(CodeSandbox sandbox, CodeSandbox::Create());
    spdlog::info("unit tests run in a sandbox: {}", sandbox.isolation());
    runner.sandbox_ = std::make_shared<const CodeSandbox>(std::move(sandbox));
  }
  runner.items_ = std::make_shared<const std::vector<TaskItem>>(std::move(items));
  const std::string path = StorePath();
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (error) return CannotCreateError(path, ": ", error.message());
  ASSIGN_OR_RETURN(runner.store_, ResultStore::Open(path));
  return runner;
}

absl::StatusOr<std::vector<ItemResult>> TaskRunner::Ask(ModelBundle& bundle, std::optional<KvDtype> kv_cache_dtype, float temperature) {
  AnsweringModel model = {.tokenizer = bundle.tokenizer.get(),
                          .chat_template = bundle.chat_template.has_value() ? &*bundle.chat_template : nullptr,
                          .bos_token = bundle.bos_token,
                          .eos_token = bundle.eos_token,
                          .stop_token_ids = bundle.stop_token_ids};
  int64_t answers = 0;
  for (const TaskItem& item : *items_) {
    ASSIGN_OR_RETURN(const std::vector<int32_t> prompt, PromptTokens(model, item));
    const bool scored = IsScoredByLikelihood(item.match);
    const int64_t most = scored ? 64 : flags_.max_tokens > 0 ? flags_.max_tokens : item.max_tokens;
    longest_ = std::max(longest_, static_cast<int64_t>(prompt.size()) + most);
    answers += scored ? static_cast<int64_t>(std::max(item.choices.size(), item.answers.size())) : temperature > 0 ? flags_.samples : 1;
  }
  const int64_t block_bytes = kBlockSizeTokens * bundle.model->KvSpecAs(kv_cache_dtype, 1).bytes_per_token();
  const int64_t blocks_per_sequence = (longest_ + kBlockSizeTokens - 1) / kBlockSizeTokens;
  ASSIGN_OR_RETURN(
      const auto engine,
      Engine::Create(*bundle.model, {.max_model_len = longest_,
                                     .kv_blocks = std::max(blocks_per_sequence + 1, std::min(kSequencesAtOnce * blocks_per_sequence,
                                                                                             (int64_t{1} << 30) / block_bytes)),
                                     .kv_cache_dtype = kv_cache_dtype,
                                     .max_sequences = kSequencesAtOnce}));
  model.engine = engine.get();
  ASSIGN_OR_RETURN(const std::string fingerprint, FingerprintOf(bundle));
  model.id = absl::StrCat(fingerprint, " ", bundle.model->DataPathName(), " ",
                          KvDtypeName(bundle.model->KvSpecAs(kv_cache_dtype, 1).dtype));
  Progress progress(absl::StrCat("asking ", bundle.name), answers, "answers");
  TaskEvaluationOptions options = {
      .samples = flags_.samples, .max_tokens = flags_.max_tokens, .sandbox = sandbox_.get(), .store = store_.get()};
  options.reuse = flags_.resume;
  options.sampling.temperature = temperature;
  options.sampling.seed = seed_;
  options.progress = [&](int64_t done) {
    progress.Set(done);
    return CheckInterrupted();
  };
  auto results = EvaluateItems(model, *items_, options);
  progress.Finish();
  if (absl::IsCancelled(results.status())) return Annotate(results.status(), "--resume goes on where this run ended");
  return results;
}

}  // namespace pith
