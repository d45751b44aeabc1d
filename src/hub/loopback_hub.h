// For tests only: a hub on a free port of 127.0.0.1 that answers as huggingface.co does, and as badly as a test asks it to.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace pith {

struct LoopbackRequest {
  std::string path;   // with the query
  std::string range;  // "bytes=0-9", or empty
  std::string authorization;
};

struct LoopbackReply {
  int status = 200;
  std::map<std::string, std::string> headers;
  std::string body;
  int64_t cut_after = -1;  // bytes of the body after which the connection is closed; -1: none
  bool no_length = false;  // no Content-Length: the end of the connection ends the body
};

// Thread-safe; what changes its behaviour is set before the first request.
class LoopbackHub {
 public:
  LoopbackHub();
  ~LoopbackHub();
  LoopbackHub(const LoopbackHub&) = delete;
  LoopbackHub& operator=(const LoopbackHub&) = delete;

  std::string endpoint() const;
  // The repository it serves: files by name; those of `lfs` are stored by Git LFS.
  std::string repository = "org/name", commit = "607a30d783dfa663caf39e06633721c8d4cfcd7e";
  std::map<std::string, std::string> files;
  std::set<std::string> lfs;
  size_t page_size = 1000;  // files per page of the listing
  bool ignores_ranges = false;
  const LoopbackHub* cdn = nullptr;  // files of LFS are redirected there: to CDN/blob/NAME
  // Asked first; none: the answer of a well-behaved hub.
  std::function<std::optional<LoopbackReply>(const LoopbackRequest&)> intercept;

  std::vector<LoopbackRequest> requests() const;
  size_t CountRequests(const std::string& path_part) const;

  // The answers of a well-behaved hub, for interceptors that change them.
  LoopbackReply Answer(const LoopbackRequest& request) const;
  // The bytes that `range` asks for, as 206, or all of them.
  LoopbackReply Content(const std::string& content, const std::string& range) const;

 private:
  void Accept();
  void Serve(int connection);
  LoopbackReply Listing(const LoopbackRequest& request) const;

  int listener_ = -1, port_ = 0;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  std::vector<LoopbackRequest> requests_;
  std::set<int> connections_;
  std::vector<std::thread> threads_;
  std::thread accepting_;
};

// The git SHA-1 of a content.
std::string GitSha1(const std::string& content);

}  // namespace pith
