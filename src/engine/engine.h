// Continuous batching over a paged KV cache. One engine thread owns it and calls Step in a loop; each step runs one forward pass that mixes
// decode rows and prefill chunks under a token budget, samples, and hands out new tokens.
//
//   Engine engine(*model, config);
//   RETURN_IF_ERROR(engine.Add(request));
//   while (engine.HasWork()) ASSIGN_OR_RETURN(std::vector<RequestOutput> outputs, engine.Step());
//
// The tokens of a request are a pure function of the request and the model: the same alone, in any batch, after preemption, with any chunk
// size or thread count (row invariance of the model, counter-based noise of the sampler). Not thread-safe; see server/engine_bridge.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/metrics.h"
#include "engine/request.h"
#include "model/decoder_model.h"

namespace pith {

struct EngineConfig {
  int64_t max_model_len = 0;  // prompt + generated tokens of one request; 0: the model's max_position_embeddings, or what the cache holds
  int64_t kv_blocks = 0;      // blocks of kBlockSizeTokens; 0: from kv_cache_bytes
  int64_t kv_cache_bytes = int64_t{1} << 30;
  std::optional<KvDtype> kv_cache_dtype;  // nullopt: the model's own
  int64_t max_batch_tokens = 512;         // rows of one pass: decode rows first, the rest for prefill chunks
  int64_t max_sequences = 64;             // running at once
  int64_t prefill_chunk = 512;            // largest chunk of one prompt in one pass
};

class Engine {
 public:
  // Errors: kResourceExhausted when the KV cache cannot be had; kInvalidArgument for a config that fits no request.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(DecoderModel& model, const EngineConfig& config);
  virtual ~Engine() = default;

  // Whether a request could run at all. Errors: FieldError (kInvalidArgument) for an empty prompt, ids out of range, sampling parameters
  // out of range; kOutOfRange for prompt + max_tokens over max_model_len or more than the KV cache could ever hold (with numbers).
  // Thread-safe, unlike the rest.
  virtual absl::Status Check(const Request& request) const = 0;
  // Queues a request. Errors: those of Check; kInternal when the id is in use.
  virtual absl::Status Add(Request request) = 0;
  // Ends a request wherever it is (queued, prefill, decode); its blocks are free before the next step. Unknown ids are ignored.
  virtual void Abort(RequestId id) = 0;
  virtual bool HasWork() const = 0;
  // One pass. An error of the model ends every request of the pass with FinishReason::kError; Step itself fails only on a bug of ours.
  virtual absl::StatusOr<std::vector<RequestOutput>> Step() = 0;

  virtual const EngineConfig& config() const = 0;    // with the zeros resolved
  virtual const EngineMetrics& metrics() const = 0;  // read on the engine thread, or copied by it for others
};

}  // namespace pith
