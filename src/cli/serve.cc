#include <ctime>
#include <thread>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "base/progress.h"
#include "base/status.h"
#include "cli/activations_flag.h"
#include "cli/commands.h"
#include "cli/kv_cache_flag.h"
#include "cli/model_bundle.h"
#include "cli/prepack_cache_flag.h"
#include "cli/version.h"
#include "server/server.h"

namespace pith {
namespace {

struct ServeFlags {
  WeightOnlyActivation activations;
  std::string prepack_cache;
  std::string model, name;
  ServerConfig server;
  EngineConfig engine;
  int64_t kv_cache_mib = 1024;
  int drain_timeout_s = 30;
};

// A host other than loopback would be open to everyone: this server has no keys.
bool IsLoopback(const std::string& host) { return host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0; }

ServedModel MakeServedModel(const ServeFlags& options, const ModelBundle& bundle) {
  return {.name = options.name.empty() ? bundle.name : options.name,
          .tokenizer = bundle.tokenizer.get(),
          .chat_template = bundle.chat_template.has_value() ? &*bundle.chat_template : nullptr,
          .bos_token = bundle.bos_token,
          .eos_token = bundle.eos_token,
          .stop_token_ids = bundle.stop_token_ids,
          .vocab_size = bundle.model->config().vocab_size,
          .created_unix_seconds = static_cast<int64_t>(std::time(nullptr)),
          .fingerprint = absl::StrCat("pith-", kVersion)};
}

// Waits for Ctrl-C or SIGTERM, then lets running answers finish.
absl::Status ServeUntilSignal(Server& server, const ServeFlags& options, bool quiet) {
  while (InterruptSignal() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  if (!quiet) std::fprintf(stderr, "stopping: running answers have %d s to finish; once more cuts them\n", options.drain_timeout_s);
  SetInterruptSignal(0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(options.drain_timeout_s);
  while (std::chrono::steady_clock::now() < deadline && InterruptSignal() == 0) {
    if (server.Drain(std::chrono::milliseconds(50))) return absl::OkStatus();
  }
  std::fputs(InterruptSignal() != 0 ? "running answers were cut\n" : "drain timeout: running answers were cut\n", stderr);
  return absl::OkStatus();
}

absl::Status RunServe(const ServeFlags& options, const CommonOptions& common) {
  if (!common.json_path.empty()) return UsageError("--json: serve has no result object; GET /v1/models and /metrics tell its state");
  if (!IsLoopback(options.server.http.host)) {
    return UsageError("--host: expected a loopback address (this server has no API keys yet), found ", Printable(options.server.http.host));
  }
  RETURN_IF_ERROR(HttpServer::CheckAddress(options.server.http));
  ThreadPool pool(common.threads);
  ASSIGN_OR_RETURN(ModelBundle bundle, LoadModelFiles(options.model));
  RETURN_IF_ERROR(CheckContextSize(bundle, options.engine.max_model_len));
  RETURN_IF_ERROR(LoadWeights(bundle, pool, options.activations, options.prepack_cache));
  EngineConfig engine_config = options.engine;
  engine_config.kv_cache_bytes = options.kv_cache_mib << 20;
  engine_config.prefill_chunk = engine_config.max_batch_tokens;
  ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::Create(*bundle.model, engine_config));
  const EngineConfig resolved = engine->config();
  ASSIGN_OR_RETURN(const auto server, Server::Start(options.server, MakeServedModel(options, bundle), std::move(engine)));
  if (!common.quiet) {
    std::fprintf(stderr, "serving %s (%s) at http://%s:%d/v1, context %d, KV cache for %d tokens in %s\n",
                 Printable(options.model, 500).c_str(), bundle.model->DataPathName().c_str(), options.server.http.host.c_str(),
                 server->port(), static_cast<int>(resolved.max_model_len), static_cast<int>(resolved.kv_blocks * kBlockSizeTokens),
                 std::string(KvDtypeName(*resolved.kv_cache_dtype)).c_str());
  }
  return ServeUntilSignal(*server, options, common.quiet);
}

}  // namespace

CommandFunction SetupServe(CLI::App& app) {
  auto options = std::make_shared<ServeFlags>();
  app.add_option("model", options->model, "model: a directory, a .gguf file, or ORG/NAME that pith pull fetched")->required();
  app.add_option("--host", options->server.http.host, "loopback address to listen on")->capture_default_str();
  app.add_option("--port", options->server.http.port, "port; 0: any free one")->check(CLI::Range(0, 65535))->capture_default_str();
  app.add_option("--served-model-name,--alias", options->name, "name in /v1/models (default: the last part of the path, or ORG/NAME)");
  app.add_option("--max-model-len,-c,--ctx-size", options->engine.max_model_len,
                 "tokens of one request at most, prompt and answer (default: the model's)")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--kv-cache-mib", options->kv_cache_mib, "memory for the KV cache")->check(CLI::Range(1, 1 << 20))->capture_default_str();
  AddKvCacheDtypeFlag(app, options->engine.kv_cache_dtype);
  app.add_option("--max-num-seqs", options->engine.max_sequences, "sequences that run at once")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--max-num-batched-tokens", options->engine.max_batch_tokens,
                 "rows of one forward pass: decode first, the rest for prompts")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  app.add_option("--max-queue", options->server.max_queue, "requests running or waiting; more are answered 429")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--drain-timeout", options->drain_timeout_s, "seconds to let running answers finish after SIGTERM or Ctrl-C")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
  AddActivationsFlag(app, options->activations);
  AddPrepackCacheFlag(app, options->prepack_cache);
  return [options](const CommonOptions& common) { return RunServe(*options, common); };
}

}  // namespace pith
