#include "hub/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/check.h"
#include "base/interrupt.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr int kMaxRedirects = 10;
constexpr size_t kMaxDroppedBytes = size_t{1} << 20;  // of a body that is of no use

struct UrlDeleter {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Url = std::unique_ptr<CURLU, UrlDeleter>;
using HeaderList = std::unique_ptr<curl_slist, ListDeleter>;

absl::StatusOr<Url> ParseUrl(const std::string& text) {
  Url url(curl_url());
  CHECK(url != nullptr);
  if (curl_url_set(url.get(), CURLUPART_URL, text.c_str(), 0) != CURLUE_OK) {
    return BadFileError("expected a URL, found ", Printable(ShownUrl(text), 200));
  }
  return url;
}

std::string UrlPart(const Url& url, CURLUPart part, unsigned int flags = 0) {
  char* text = nullptr;
  if (curl_url_get(url.get(), part, &text, flags) != CURLUE_OK) return "";
  std::string value = text;
  curl_free(text);
  return value;
}

void AddHeader(HeaderList& list, const std::string& line) {
  curl_slist* longer = curl_slist_append(list.get(), line.c_str());
  CHECK(longer != nullptr);
  (void)list.release();
  list.reset(longer);
}

bool IsRedirect(const HttpClientResponse& response) {
  switch (response.status) {
    case 301:
    case 302:
    case 303:
    case 307:
    case 308: return !response.Header("location").empty();
    default: return false;
  }
}

// A certificate problem stays; everything else that fails below HTTP may pass.
absl::Status TransportError(CURLcode code, const std::string& url, const char* detail) {
  const std::string message = absl::StrCat(Printable(ShownUrl(url), 200), ": ",
                                           Printable(*detail != '\0' ? detail : curl_easy_strerror(code), 200));
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR: return IoError(message, " (SSL_CERT_FILE names other certificates to trust)");
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL: return BadFileError(message);
    default: return UnavailableError(message);
  }
}

}  // namespace

const std::string& HttpClientResponse::Header(absl::string_view name) const {
  static const std::string none;
  const auto it = headers.find(std::string(name));
  return it == headers.end() ? none : it->second;
}

std::optional<int64_t> HttpClientResponse::content_length() const {
  int64_t length = 0;
  if (!absl::SimpleAtoi(Header("content-length"), &length) || length < 0) return std::nullopt;
  return length;
}

std::optional<int64_t> HttpClientResponse::retry_after_s() const {
  if (status != 429 && status != 503) return std::nullopt;
  int64_t seconds = 0;
  if (const std::string& text = Header("retry-after"); !text.empty()) {
    if (absl::SimpleAtoi(text, &seconds)) return std::max<int64_t>(seconds, 0);
    const int64_t date = curl_getdate(text.c_str(), nullptr), now = std::time(nullptr);
    if (date >= 0) return std::max<int64_t>(date - now, 0);
  }
  // RateLimit: "api";r=0;t=55 (remaining requests, seconds to the next window)
  for (absl::string_view part : absl::StrSplit(Header("ratelimit"), ';')) {
    part = absl::StripAsciiWhitespace(part);
    if (absl::ConsumePrefix(&part, "t=") && absl::SimpleAtoi(part, &seconds)) return std::max<int64_t>(seconds, 0);
  }
  return std::nullopt;
}

// What the callbacks of one transfer share.
struct HttpClient::Transfer {
  BodySink sink;
  const std::map<std::string, std::string>& linked;  // what redirects before said of the file
  HttpClientResponse response;
  absl::Status sink_status = absl::OkStatus();
  size_t dropped = 0;
  bool body_of_no_use = false;  // ended early, for nothing would be done with the rest
  const std::atomic<bool>* cancel = nullptr;

  static size_t OnHeader(char* data, size_t size, size_t count, void* user) {
    auto* transfer = static_cast<Transfer*>(user);
    HttpClientResponse& response = transfer->response;
    const absl::string_view line = absl::StripAsciiWhitespace(absl::string_view(data, size * count));
    if (absl::StartsWith(line, "HTTP/")) {  // a status line: of an interim answer, or of the one that counts
      response.headers.clear();
      const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
      if (words.size() < 2 || !absl::SimpleAtoi(words[1], &response.status)) response.status = 0;
    } else if (line.empty()) {
      response.headers.insert(transfer->linked.begin(), transfer->linked.end());
    } else if (const size_t colon = line.find(':'); colon != absl::string_view::npos) {
      response.headers[absl::AsciiStrToLower(line.substr(0, colon))] = std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    }
    return size * count;
  }

  static size_t OnBody(char* data, size_t size, size_t count, void* user) {
    auto* transfer = static_cast<Transfer*>(user);
    const size_t bytes = size * count;
    if (transfer->response.status < 200 || transfer->response.status > 299) {
      transfer->dropped += bytes;
      transfer->body_of_no_use = transfer->dropped > kMaxDroppedBytes;
      return transfer->body_of_no_use ? 0 : bytes;
    }
    transfer->sink_status = transfer->sink(transfer->response, absl::string_view(data, bytes));
    return transfer->sink_status.ok() ? bytes : 0;
  }

  static int OnProgress(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    const std::atomic<bool>* cancel = static_cast<Transfer*>(user)->cancel;
    return InterruptSignal() != 0 || (cancel != nullptr && cancel->load()) ? 1 : 0;
  }
};

void HttpClient::CurlDeleter::operator()(void* curl) const { curl_easy_cleanup(curl); }

HttpClient::HttpClient(HttpOptions options) : options_(std::move(options)) {
  static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  CHECK(initialized == CURLE_OK);
  curl_.reset(curl_easy_init());
  CHECK(curl_ != nullptr);
  if (!options_.token.empty()) token_origin_ = UrlOrigin(options_.token_url).value_or("");
}

HttpClient::~HttpClient() = default;

absl::Status HttpClient::Perform(const HttpClientRequest& request, const std::string& url, Transfer& transfer) {
  CURL* curl = curl_.get();
  ASSIGN_OR_RETURN(const std::string origin, UrlOrigin(url));
  char detail[CURL_ERROR_SIZE] = "";
  HeaderList headers;
  AddHeader(headers, "Accept-Encoding: identity");
  if (!token_origin_.empty() && origin == token_origin_) AddHeader(headers, absl::StrCat("Authorization: Bearer ", options_.token));
  curl_easy_reset(curl);  // keeps the connection
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, static_cast<long>(options_.connect_timeout_s));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(options_.stall_timeout_s));
  curl_easy_setopt(curl, CURLOPT_USERAGENT, options_.user_agent.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
  if (!options_.ca_bundle.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, options_.ca_bundle.c_str());
  std::string range;
  if (request.first_byte.has_value()) {
    range = absl::StrCat(*request.first_byte, "-");
    if (request.last_byte.has_value()) absl::StrAppend(&range, *request.last_byte);
    curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
  }
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &Transfer::OnHeader);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Transfer::OnBody);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &Transfer::OnProgress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
  const CURLcode code = curl_easy_perform(curl);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, nullptr);  // which closing the connection later might still write to
  if (!transfer.sink_status.ok()) return transfer.sink_status;
  if (code == CURLE_ABORTED_BY_CALLBACK) return CancelledError("interrupted");
  if (code != CURLE_OK && !transfer.body_of_no_use) return TransportError(code, url, detail);
  if (transfer.response.status < 100) return UnavailableError(Printable(ShownUrl(url), 200), ": expected an HTTP answer, found none");
  return absl::OkStatus();
}

absl::StatusOr<HttpClientResponse> HttpClient::Get(const HttpClientRequest& request, BodySink sink, const std::atomic<bool>* cancel) {
  std::string url = request.url;
  std::map<std::string, std::string> linked;
  for (int hop = 0; hop <= kMaxRedirects; ++hop) {
    Transfer transfer{.sink = sink, .linked = linked, .cancel = cancel};
    transfer.response.url = url;
    RETURN_IF_ERROR(Perform(request, url, transfer));
    const HttpClientResponse& response = transfer.response;
    if (!IsRedirect(response)) return std::move(transfer.response);
    for (const auto& [name, value] : response.headers) {
      if (absl::StartsWith(name, "x-linked-") || name == "x-repo-commit") linked.emplace(name, value);
    }
    ASSIGN_OR_RETURN(std::string next, ResolveUrl(url, response.Header("location")));
    if (absl::StartsWith(url, "https:") && !absl::StartsWith(next, "https:")) {
      return BadFileError(Printable(ShownUrl(url), 200), ": expected a redirect that stays with HTTPS, found one to ",
                          Printable(ShownUrl(next), 200));
    }
    url = std::move(next);
  }
  return BadFileError(Printable(ShownUrl(request.url), 200), ": expected at most ", kMaxRedirects, " redirects, found more");
}

absl::StatusOr<std::string> UrlOrigin(const std::string& text) {
  ASSIGN_OR_RETURN(const Url url, ParseUrl(text));
  const std::string scheme = UrlPart(url, CURLUPART_SCHEME);
  if (scheme != "http" && scheme != "https") return BadFileError("expected an http or https URL, found ", Printable(ShownUrl(text), 200));
  return absl::StrCat(scheme, "://", absl::AsciiStrToLower(UrlPart(url, CURLUPART_HOST)), ":",
                      UrlPart(url, CURLUPART_PORT, CURLU_DEFAULT_PORT));
}

absl::StatusOr<std::string> ResolveUrl(const std::string& base, const std::string& location) {
  ASSIGN_OR_RETURN(const Url url, ParseUrl(base));
  if (curl_url_set(url.get(), CURLUPART_URL, location.c_str(), 0) != CURLUE_OK) {
    return BadFileError(Printable(ShownUrl(base), 200), ": expected the URL of a redirect, found ", Printable(ShownUrl(location), 200));
  }
  const std::string resolved = UrlPart(url, CURLUPART_URL);
  RETURN_IF_ERROR(UrlOrigin(resolved).status());
  return resolved;
}

std::string ShownUrl(absl::string_view url) { return std::string(url.substr(0, url.find('?'))); }

}  // namespace pith
