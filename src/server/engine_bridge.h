// The engine thread and the two mailboxes around it: requests and cancellations in, outputs out through each request's callback.
//
// Thread-safe. Callbacks run on the engine thread and must only hand the output on. After a request's output with a finish reason, or after
// Abort has taken effect (reported as kAborted), nothing more is called for it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "engine/engine.h"

namespace pith {

class EngineBridge {
 public:
  using OnOutput = std::function<void(RequestOutput)>;

  // max_waiting: requests queued or running beyond which Submit refuses.
  EngineBridge(std::unique_ptr<Engine> engine, int64_t max_waiting);
  ~EngineBridge() { Stop(); }
  EngineBridge(const EngineBridge&) = delete;
  EngineBridge& operator=(const EngineBridge&) = delete;

  struct Submission {
    Request request;  // its id is set here
    OnOutput on_output;
  };

  // Queues all of them, or none, and returns their ids in order. Errors: those of Engine::Check (kInvalidArgument), kInvalidArgument when
  // they are more than the queue can ever hold, kResourceExhausted when it is full, kUnavailable when draining.
  absl::StatusOr<std::vector<RequestId>> Submit(std::vector<Submission> submissions);
  void Abort(RequestId id);

  // No new requests from now on.
  void StartDraining();
  // Ends every request with FinishReason::kAborted and joins the engine thread; Submit refuses from now on. Idempotent.
  void Stop();
  bool draining() const;
  // Live requests: queued or running.
  int64_t num_live() const;
  // False when the engine has work and has not completed a step for `limit`.
  bool MakesProgress(std::chrono::milliseconds limit) const;
  EngineMetrics metrics() const;  // as of the last step
  const EngineConfig& config() const { return engine_->config(); }

 private:
  void Loop();
  absl::StatusOr<std::vector<RequestOutput>> Step();
  // Takes over what callers have put in. Returns false when it is time to end.
  bool TakeMail(std::unique_lock<std::mutex>& lock);
  void Deliver(std::vector<RequestOutput> outputs);

  const std::unique_ptr<Engine> engine_;  // calls from the engine thread only, but for Check and config
  const int64_t max_waiting_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Submission> submitted_;
  std::vector<RequestId> aborted_;
  bool stop_ = false, draining_ = false;
  int64_t num_live_ = 0;
  RequestId next_id_ = 1;
  EngineMetrics metrics_;
  std::chrono::steady_clock::time_point last_progress_;
  absl::flat_hash_map<RequestId, OnOutput> callbacks_;  // engine thread only
  std::thread thread_;
};

}  // namespace pith
