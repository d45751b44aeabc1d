#include "server/engine_bridge.h"

#include "base/log.h"
#include "base/status.h"

namespace pith {

EngineBridge::EngineBridge(std::unique_ptr<Engine> engine, int64_t max_waiting)
    : engine_(std::move(engine)),
      max_waiting_(max_waiting),
      metrics_(engine_->metrics()),
      last_progress_(std::chrono::steady_clock::now()) {
  thread_ = std::thread([this] { Loop(); });
}

void EngineBridge::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = draining_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<std::vector<RequestId>> EngineBridge::Submit(std::vector<Submission> submissions) {
  for (const Submission& submission : submissions) RETURN_IF_ERROR(engine_->Check(submission.request));
  const auto count = static_cast<int64_t>(submissions.size());
  if (count > max_waiting_) {  // no time to wait would help
    return FieldError("n", "expected at most ", max_waiting_, " choices of one request (prompts times n), found ", count);
  }
  const std::lock_guard lock(mutex_);
  if (draining_) return UnavailableError("the server is shutting down");
  if (num_live_ + count > max_waiting_) {
    return absl::ResourceExhaustedError(absl::StrCat("the queue is full: ", num_live_, " requests are running or waiting"));
  }
  std::vector<RequestId> ids;
  for (Submission& submission : submissions) {
    submission.request.id = next_id_++;
    ids.push_back(submission.request.id);
    submitted_.push_back(std::move(submission));
  }
  num_live_ += count;
  wake_.notify_one();
  return ids;
}

void EngineBridge::Abort(RequestId id) {
  const std::lock_guard lock(mutex_);
  aborted_.push_back(id);
  wake_.notify_one();
}

void EngineBridge::StartDraining() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
}

bool EngineBridge::draining() const {
  const std::lock_guard lock(mutex_);
  return draining_;
}

int64_t EngineBridge::num_live() const {
  const std::lock_guard lock(mutex_);
  return num_live_;
}

bool EngineBridge::MakesProgress(std::chrono::milliseconds limit) const {
  const std::lock_guard lock(mutex_);
  return num_live_ == 0 || std::chrono::steady_clock::now() - last_progress_ < limit;
}

EngineMetrics EngineBridge::metrics() const {
  const std::lock_guard lock(mutex_);
  return metrics_;
}

bool EngineBridge::TakeMail(std::unique_lock<std::mutex>& lock) {
  if (!engine_->HasWork()) {
    wake_.wait(lock, [&] { return stop_ || !submitted_.empty() || !aborted_.empty(); });
    last_progress_ = std::chrono::steady_clock::now();
  }
  if (stop_) return false;
  auto submitted = std::exchange(submitted_, {});
  const auto aborted = std::exchange(aborted_, {});
  lock.unlock();
  std::vector<RequestOutput> refused;
  for (auto& [request, on_output] : submitted) {
    const RequestId id = request.id;
    callbacks_[id] = std::move(on_output);
    const absl::Status added = engine_->Add(std::move(request));
    if (!added.ok()) refused.push_back({.id = id, .finish = FinishReason::kError, .error = std::string(added.message())});
  }
  for (const RequestId id : aborted) {
    engine_->Abort(id);
    if (callbacks_.contains(id)) refused.push_back({.id = id, .finish = FinishReason::kAborted});
  }
  Deliver(std::move(refused));
  lock.lock();
  return true;
}

void EngineBridge::Deliver(std::vector<RequestOutput> outputs) {
  for (RequestOutput& output : outputs) {
    const auto it = callbacks_.find(output.id);
    if (it == callbacks_.end()) continue;
    const bool ended = output.finish != FinishReason::kNone;
    const OnOutput on_output = it->second;
    if (ended) callbacks_.erase(it);
    on_output(std::move(output));
    if (ended) {
      const std::lock_guard lock(mutex_);
      --num_live_;
    }
  }
}

absl::StatusOr<std::vector<RequestOutput>> EngineBridge::Step() {
  try {
    return engine_->Step();
  } catch (const std::bad_alloc&) {
    return OutOfMemoryError("out of memory");
  }
}

void EngineBridge::Loop() {
  std::unique_lock lock(mutex_);
  while (TakeMail(lock)) {
    if (!engine_->HasWork()) {
      metrics_ = engine_->metrics();
      continue;
    }
    lock.unlock();
    auto outputs = Step();
    if (outputs.ok()) {
      Deliver(*std::move(outputs));
    } else {  // a bug of ours or no memory: nothing the engine holds can go on
      spdlog::error("engine: {}", std::string(outputs.status().message()));
      std::vector<RequestOutput> failed;
      for (const auto& [id, callback] : callbacks_) {
        engine_->Abort(id);
        failed.push_back({.id = id, .finish = FinishReason::kError, .error = std::string(outputs.status().message())});
      }
      Deliver(std::move(failed));
    }
    lock.lock();
    metrics_ = engine_->metrics();
    last_progress_ = std::chrono::steady_clock::now();
  }
  for (Submission& submission : submitted_) callbacks_[submission.request.id] = std::move(submission.on_output);
  submitted_.clear();
  lock.unlock();
  std::vector<RequestOutput> ended;
  for (const auto& [id, callback] : callbacks_) ended.push_back({.id = id, .finish = FinishReason::kAborted});
  Deliver(std::move(ended));
}

}  // namespace pith
