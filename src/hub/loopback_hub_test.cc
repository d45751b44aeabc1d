#include "hub/loopback_hub.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "base/json.h"
#include "base/sha256.h"
#include "gtest/gtest.h"
#include "hub/content_hash.h"

namespace pith {
namespace {

// Request line and headers of one request; empty at the end of the connection.
std::string ReadHead(int connection) {
  std::string head;
  char byte = 0;
  while (!absl::EndsWith(head, "\r\n\r\n") && recv(connection, &byte, 1, 0) == 1) head += byte;
  return absl::EndsWith(head, "\r\n\r\n") ? head : "";
}

LoopbackRequest ParseHead(const std::string& head) {
  LoopbackRequest request;
  const std::vector<std::string> lines = absl::StrSplit(head, "\r\n");
  const std::vector<std::string> words = absl::StrSplit(lines[0], ' ');
  if (words.size() > 1) request.path = words[1];
  for (const std::string& line : lines) {
    const std::pair<std::string, std::string> header = absl::StrSplit(line, absl::MaxSplits(": ", 1));
    if (absl::EqualsIgnoreCase(header.first, "range")) request.range = header.second;
    if (absl::EqualsIgnoreCase(header.first, "authorization")) request.authorization = header.second;
  }
  return request;
}

bool SendAll(int connection, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// False when the connection is to be closed.
bool SendReply(int connection, const LoopbackReply& reply) {
  std::string head = absl::StrCat("HTTP/1.1 ", reply.status, " Status\r\n");
  for (const auto& [name, value] : reply.headers) absl::StrAppend(&head, name, ": ", value, "\r\n");
  if (reply.headers.count("Content-Length") == 0 && !reply.no_length) {
    absl::StrAppend(&head, "Content-Length: ", reply.body.size(), "\r\n");
  }
  if (reply.no_length) absl::StrAppend(&head, "Connection: close\r\n");
  absl::string_view body = reply.body;
  if (reply.cut_after >= 0) body = body.substr(0, static_cast<size_t>(reply.cut_after));
  return SendAll(connection, absl::StrCat(head, "\r\n")) && SendAll(connection, body) && reply.cut_after < 0 && !reply.no_length;
}

LoopbackReply NotFound(const std::string& code) { return {.status = 404, .headers = {{"X-Error-Code", code}}, .body = "{}"}; }

}  // namespace

std::string GitSha1(const std::string& content) {
  ContentHash hash(ContentId::Kind::kGitSha1, static_cast<int64_t>(content.size()));
  hash.Update(content);
  return hash.HexDigest();
}

LoopbackHub::LoopbackHub() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  for (const char* name : {"NO_PROXY", "no_proxy"}) setenv(name, "127.0.0.1", 1);  // whatever proxy the machine has
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  CHECK(bind(listener_, reinterpret_cast<const sockaddr*>(&address), length) == 0 && listen(listener_, 64) == 0);
  CHECK(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  port_ = ntohs(address.sin_port);
  accepting_ = std::thread([this] { Accept(); });
}

LoopbackHub::~LoopbackHub() {
  stop_ = true;
  shutdown(listener_, SHUT_RDWR);
  accepting_.join();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const int connection : connections_) shutdown(connection, SHUT_RDWR);
  }
  for (std::thread& thread : threads_) thread.join();
  close(listener_);
}

std::string LoopbackHub::endpoint() const { return absl::StrCat("http://127.0.0.1:", port_); }

std::vector<LoopbackRequest> LoopbackHub::requests() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return requests_;
}

size_t LoopbackHub::CountRequests(const std::string& path_part) const {
  const std::vector<LoopbackRequest> all = requests();
  return static_cast<size_t>(
      std::count_if(all.begin(), all.end(), [&](const LoopbackRequest& request) { return absl::StrContains(request.path, path_part); }));
}

void LoopbackHub::Accept() {
  while (!stop_) {
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    const std::lock_guard<std::mutex> lock(mutex_);
    connections_.insert(connection);
    threads_.emplace_back([this, connection] { Serve(connection); });
  }
}

void LoopbackHub::Serve(int connection) {
  bool open = true;
  while (open && !stop_) {
    const std::string head = ReadHead(connection);
    if (head.empty()) break;
    const LoopbackRequest request = ParseHead(head);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      requests_.push_back(request);
    }
    const std::optional<LoopbackReply> reply = intercept ? intercept(request) : std::nullopt;
    open = SendReply(connection, reply.has_value() ? *reply : Answer(request));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  connections_.erase(connection);
  close(connection);
}

LoopbackReply LoopbackHub::Content(const std::string& content, const std::string& range) const {
  absl::string_view text = range;
  if (ignores_ranges || !absl::ConsumePrefix(&text, "bytes=")) return {.body = content};
  const std::pair<std::string, std::string> ends = absl::StrSplit(text, '-');
  const size_t first = std::strtoull(ends.first.c_str(), nullptr, 10);
  const size_t last = ends.second.empty() ? content.size() - 1
                                          : std::min<size_t>(std::strtoull(ends.second.c_str(), nullptr, 10), content.size() - 1);
  if (first > last) return {.status = 416, .headers = {{"Content-Range", absl::StrCat("bytes */", content.size())}}};
  return {.status = 206,
          .headers = {{"Content-Range", absl::StrCat("bytes ", first, "-", last, "/", content.size())}},
          .body = content.substr(first, last - first + 1)};
}

LoopbackReply LoopbackHub::Listing(const LoopbackRequest& request) const {
  size_t first = 0;
  const size_t cursor = request.path.find("cursor=");
  if (cursor != std::string::npos) first = std::strtoull(request.path.c_str() + cursor + 7, nullptr, 10);
  Json page = Json::array();
  auto it = files.begin();
  std::advance(it, static_cast<std::ptrdiff_t>(std::min(first, files.size())));
  for (; it != files.end() && page.size() < page_size; ++it) {
    const auto& [name, content] = *it;
    Json entry = {{"type", "file"}, {"path", name}, {"size", content.size()}, {"oid", GitSha1(content)}};
    if (lfs.count(name) > 0) entry["lfs"] = {{"oid", Sha256Hex(content)}, {"size", content.size()}, {"pointerSize", 134}};
    page.push_back(entry);
  }
  LoopbackReply reply{.body = DumpJson(page)};
  if (it != files.end()) {
    reply.headers["Link"] = absl::StrCat("<", endpoint(), "/api/models/", repository, "/tree/", commit,
                                         "?recursive=true&cursor=", first + page_size, ">; rel=\"next\"");
  }
  return reply;
}

LoopbackReply LoopbackHub::Answer(const LoopbackRequest& request) const {
  absl::string_view path = request.path;
  if (absl::ConsumePrefix(&path, "/blob/")) {  // as a content delivery network
    const auto it = files.find(std::string(path.substr(0, path.find('?'))));
    return it == files.end() ? LoopbackReply{.status = 403} : Content(it->second, request.range);
  }
  if (absl::ConsumePrefix(&path, absl::StrCat("/api/models/", repository, "/"))) {
    if (path == "revision/main" || path == absl::StrCat("revision/", commit)) return {.body = absl::StrCat(R"({"sha":")", commit, R"("})")};
    return absl::StartsWith(path, absl::StrCat("tree/", commit, "?")) ? Listing(request) : NotFound("RevisionNotFound");
  }
  if (!absl::ConsumePrefix(&path, absl::StrCat("/", repository, "/resolve/", commit, "/"))) return NotFound("RepoNotFound");
  const auto it = files.find(std::string(path));
  if (it == files.end()) return NotFound("EntryNotFound");
  const bool is_lfs = lfs.count(it->first) > 0;
  const std::map<std::string, std::string> linked = {{"X-Linked-Etag", absl::StrCat("\"", Sha256Hex(it->second), "\"")},
                                                     {"X-Linked-Size", absl::StrCat(it->second.size())}};
  if (is_lfs && cdn != nullptr) {
    LoopbackReply reply{.status = 302, .headers = linked};
    reply.headers["Location"] = absl::StrCat(cdn->endpoint(), "/blob/", it->first, "?signature=1");
    return reply;
  }
  LoopbackReply reply = Content(it->second, request.range);
  if (is_lfs) reply.headers.insert(linked.begin(), linked.end());
  return reply;
}

namespace {

TEST(LoopbackHub, GivesRangesAsServersDo) {
  const LoopbackHub hub;
  EXPECT_EQ(hub.Content("0123456789", "").body, "0123456789");
  const LoopbackReply part = hub.Content("0123456789", "bytes=2-4");
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, "234");
  EXPECT_EQ(part.headers.at("Content-Range"), "bytes 2-4/10");
  EXPECT_EQ(hub.Content("0123456789", "bytes=8-").body, "89");
  EXPECT_EQ(hub.Content("0123456789", "bytes=10-").status, 416);
}

}  // namespace
}  // namespace pith
