#include "hub/range_fetch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "base/status.h"
#include "hub/body_check.h"
#include "hub/hub_client.h"

namespace pith {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(50);
constexpr size_t kHandOverBytes = size_t{256} << 10;  // that wake the thread that writes

struct ByteRange {
  int64_t index = 0, first = 0, bytes = 0;
};

// What the connections and the writing thread share. Thread-safe.
class RangeQueue {
 public:
  RangeQueue(const DownloadSource& source, int64_t first, const DownloadOptions& options)
      : first_(first),
        size_(source.file.size),
        range_bytes_(options.range_bytes),
        num_ranges_((size_ - first + range_bytes_ - 1) / range_bytes_),
        window_(int64_t{2} * options.connections),
        url_(source.url) {}

  // The next range to ask for, once there is room for its bytes; none at the end or after Stop.
  std::optional<ByteRange> Take() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return stop_ || next_ == num_ranges_ || next_ < head_ + window_; });
    if (stop_ || next_ == num_ranges_) return std::nullopt;
    const int64_t begin = first_ + next_ * range_bytes_;
    const ByteRange range{next_++, begin, std::min(range_bytes_, size_ - begin)};
    received_.emplace(range.index, Received{});
    return range;
  }

  void Add(const ByteRange& range, absl::string_view piece) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::string& bytes = received_[range.index].bytes;
    absl::StrAppend(&bytes, piece);
    if (range.index == head_ && bytes.size() >= kHandOverBytes) arrived_.notify_one();
  }

  void Complete(const ByteRange& range) {
    const std::lock_guard<std::mutex> lock(mutex_);
    received_[range.index].complete = true;
    if (range.index == head_) arrived_.notify_one();
  }

  // Ends all connections; the first call says why.
  void Stop(const absl::Status& reason, bool ranges_ignored = false) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!stop_) {
      status_ = reason;
      ranges_ignored_ = ranges_ignored;
    }
    stop_ = true;
    changed_.notify_all();
    arrived_.notify_one();
  }

  // Waits for bytes, and takes all that came without a gap. Empty: nothing came for a moment, or it is done() or stopped().
  std::string NextBytes() {
    std::unique_lock<std::mutex> lock(mutex_);
    arrived_.wait_for(lock, kPollInterval, [&] {
      const auto head = received_.find(head_);
      return stop_ || head_ == num_ranges_ ||
             (head != received_.end() && (head->second.complete || head->second.bytes.size() >= kHandOverBytes));
    });
    std::string bytes;
    for (auto head = received_.find(head_); head != received_.end(); head = received_.find(head_)) {
      bytes += std::exchange(head->second.bytes, "");
      if (!head->second.complete) break;
      received_.erase(head);
      ++head_;
      changed_.notify_all();
    }
    return bytes;
  }

  bool done() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return head_ == num_ranges_;
  }
  bool stopped() const { return stop_; }
  const std::atomic<bool>* stop_flag() const { return &stop_; }
  absl::Status status() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return status_;
  }
  bool ranges_ignored() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ranges_ignored_;
  }

  // Where redirects led: later ranges ask there directly, until that address expires.
  std::string url() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return url_;
  }
  void set_url(const std::string& url) {
    const std::lock_guard<std::mutex> lock(mutex_);
    url_ = url;
  }

 private:
  struct Received {
    std::string bytes;  // not yet handed over
    bool complete = false;
  };

  const int64_t first_, size_, range_bytes_, num_ranges_, window_;
  mutable std::mutex mutex_;
  std::condition_variable changed_, arrived_;
  std::map<int64_t, Received> received_;
  int64_t next_ = 0, head_ = 0;  // to ask for; to hand over
  std::atomic<bool> stop_{false};
  bool ranges_ignored_ = false;
  absl::Status status_;
  std::string url_;
};

// One connection.
class RangeWorker {
 public:
  RangeWorker(const DownloadSource& source, const DownloadOptions& options, RangeQueue& queue)
      : source_(source), options_(options), queue_(queue), http_(HubHttpOptions(source.settings, source.settings.download_timeout_s)) {}

  void Run() {
    try {
      while (const std::optional<ByteRange> range = queue_.Take()) {
        if (const absl::Status status = Fetch(*range); !status.ok()) return queue_.Stop(status);
        if (queue_.stopped()) return;
        queue_.Complete(*range);
      }
    } catch (const std::bad_alloc&) {
      queue_.Stop(OutOfMemoryError("out of memory"));
    }
  }

 private:
  absl::Status Fetch(const ByteRange& range) {
    RetryState retry(options_.retry, queue_.stop_flag());
    int64_t received = 0;
    while (received < range.bytes) {
      const int64_t before = received;
      std::optional<int64_t> retry_after_s;
      const absl::Status status = Ask(range, &received, &retry_after_s);
      if (queue_.stopped()) return absl::OkStatus();
      if (received > before) retry.Progress();
      if (!status.ok()) RETURN_IF_ERROR(retry.WaitAfter(status, retry_after_s));
    }
    return absl::OkStatus();
  }

  // One request for what is missing of a range.
  absl::Status Ask(const ByteRange& range, int64_t* received, std::optional<int64_t>* retry_after_s) {
    const std::string url = queue_.url();
    const int64_t first = range.first + *received, last = range.first + range.bytes - 1;
    bool checked = false;
    const auto take = [&](const HttpClientResponse& response, absl::string_view piece) -> absl::Status {
      if (!std::exchange(checked, true)) {
        RETURN_IF_ERROR(CheckBody(response, source_.file, first, last, piece).status());
        if (response.status != 206) {
          queue_.Stop(absl::OkStatus(), true);
          return CancelledError("the server ignores ranges");
        }
      }
      if (static_cast<int64_t>(piece.size()) > range.bytes - *received) {
        return BadFileError("expected ", last - first + 1, " bytes from byte ", first, " on, found more");
      }
      queue_.Add(range, piece);
      *received += static_cast<int64_t>(piece.size());
      return absl::OkStatus();
    };
    const absl::StatusOr<HttpClientResponse> answer = http_.Get({url, first, last}, take, queue_.stop_flag());
    RETURN_IF_ERROR(answer.status());
    *retry_after_s = answer->retry_after_s();
    const absl::Status status = StatusOfAnswer(*answer, source_.repo, source_.settings, source_.file.name);
    if (status.ok()) {
      queue_.set_url(answer->url);
      return *received == range.bytes ? absl::OkStatus() : UnavailableError("cut after ", *received, " of ", range.bytes, " bytes");
    }
    if (url == source_.url || absl::IsUnavailable(status)) return status;
    queue_.set_url(source_.url);  // the address that a redirect gave has expired
    return absl::OkStatus();
  }

  const DownloadSource& source_;
  const DownloadOptions& options_;
  RangeQueue& queue_;
  HttpClient http_;
};

// The threads of all connections; they have ended when this has.
class Connections {
 public:
  Connections(const DownloadSource& source, const DownloadOptions& options, RangeQueue& queue, int64_t count) : queue_(queue) {
    try {
      for (int64_t i = 0; i < count; ++i) {
        threads_.emplace_back([&] { RangeWorker(source, options, queue).Run(); });
      }
    } catch (const std::system_error&) {
      if (threads_.empty()) throw;  // fewer do as well
    }
  }
  ~Connections() { End(CancelledError("interrupted")); }
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  void End(const absl::Status& reason) {
    queue_.Stop(reason);
    for (std::thread& thread : std::exchange(threads_, {})) thread.join();
  }

 private:
  RangeQueue& queue_;
  std::vector<std::thread> threads_;
};

// Hands over what came, until all of it did or something ends it.
absl::Status HandOver(RangeQueue& queue, absl::FunctionRef<absl::Status(absl::string_view)> append) {
  while (!queue.done() && !queue.stopped()) {
    const std::string bytes = queue.NextBytes();
    if (!bytes.empty()) RETURN_IF_ERROR(append(bytes));
    RETURN_IF_ERROR(CheckInterrupted());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FetchRanges(const DownloadSource& source, int64_t first, const DownloadOptions& options,
                         absl::FunctionRef<absl::Status(absl::string_view)> append, bool* ranges_ignored) {
  RangeQueue queue(source, first, options);
  const int64_t num_ranges = (source.file.size - first + options.range_bytes - 1) / options.range_bytes;
  Connections connections(source, options, queue, std::min<int64_t>(options.connections, num_ranges));
  const absl::Status handed_over = HandOver(queue, append);
  connections.End(handed_over);
  *ranges_ignored = queue.ranges_ignored();
  if (queue.done()) return absl::OkStatus();
  // What came without a gap is worth keeping, whatever ended the rest; unless it cannot be written.
  const absl::Status status = queue.status();
  if (handed_over.ok() || absl::IsCancelled(handed_over)) {
    const absl::Status appended = append(queue.NextBytes());
    if (!appended.ok() && !absl::IsCancelled(appended)) return appended;
  }
  return status;
}

}  // namespace pith
