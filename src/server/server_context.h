// What every route may use. Made once by Server; all parts are thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/engine_bridge.h"
#include "server/output_worker.h"
#include "server/prometheus.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace pith {

// The loaded model as the server needs it; everything borrowed but the strings, and alive as long as the server.
struct ServedModel {
  std::string name;  // in /v1/models and responses
  const Tokenizer* tokenizer = nullptr;
  const ChatTemplate* chat_template = nullptr;  // null: no /v1/chat/completions
  std::string bos_token, eos_token;
  std::vector<int32_t> stop_token_ids;
  int64_t vocab_size = 0;
  int64_t created_unix_seconds = 0;
  std::string fingerprint;  // system_fingerprint of responses
};

// OK when `name` is empty or that of the model. Errors: kNotFound, "The model `x` does not exist.".
absl::Status CheckModelName(const ServedModel& model, absl::string_view name);

struct ServerContext {
  ServedModel model;
  EngineBridge* bridge = nullptr;
  OutputWorker* worker = nullptr;
  ServerMetrics* metrics = nullptr;
};

}  // namespace pith
