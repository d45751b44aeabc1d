#include "hub/hub_settings.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "base/file.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr size_t kMaxTokenBytes = 4096;
constexpr int kMaxTimeoutSeconds = 86400;

std::string Get(EnvironmentLookup environment, const char* name) {
  const char* value = environment(name);
  return value == nullptr ? "" : value;
}

// "~" and "~/x" as a shell reads them.
std::string ExpandHome(EnvironmentLookup environment, const std::string& path) {
  if (path != "~" && !absl::StartsWith(path, "~/")) return path;
  const std::string home = Get(environment, "HOME");
  return home.empty() ? path : absl::StrCat(home, path.substr(1));
}

bool IsTrue(EnvironmentLookup environment, const char* name) {
  const std::string value = absl::AsciiStrToUpper(Get(environment, name));
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

absl::StatusOr<std::string> HuggingFaceHome(EnvironmentLookup environment) {
  if (const std::string home = Get(environment, "HF_HOME"); !home.empty()) return ExpandHome(environment, home);
  if (const std::string cache = Get(environment, "XDG_CACHE_HOME"); !cache.empty()) {
    return JoinPath(ExpandHome(environment, cache), "huggingface");
  }
  const std::string home = Get(environment, "HOME");
  if (home.empty()) return UsageError("cache: expected HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME or HOME to be set, found none");
  return JoinPath(home, ".cache/huggingface");
}

absl::Status ReadTimeout(EnvironmentLookup environment, const char* name, int* seconds) {
  const std::string value = Get(environment, name);
  if (value.empty()) return absl::OkStatus();
  if (!absl::SimpleAtoi(value, seconds) || *seconds < 1 || *seconds > kMaxTimeoutSeconds) {
    return UsageError(name, ": expected seconds in 1 to ", kMaxTimeoutSeconds, ", found ", Printable(value, 40));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadEndpoint(EnvironmentLookup environment, std::string endpoint) {
  if (const std::string value = Get(environment, "HF_ENDPOINT"); !value.empty()) endpoint = value;
  while (absl::EndsWith(endpoint, "/")) endpoint.pop_back();
  const size_t scheme = absl::StartsWith(endpoint, "https://") ? 8 : absl::StartsWith(endpoint, "http://") ? 7 : 0;
  const bool plain = std::all_of(endpoint.begin(), endpoint.end(),
                                 [](char c) { return c > ' ' && c < 0x7F && c != '?' && c != '#' && c != '@'; });
  if (scheme == 0 || endpoint.size() == scheme || !plain) {
    return UsageError("HF_ENDPOINT: expected http:// or https:// and a host, found ", Printable(endpoint, 200));
  }
  return endpoint;
}

// A token is never quoted in a message.
absl::StatusOr<std::string> CheckToken(absl::string_view text, absl::string_view source) {
  const std::string token(absl::StripAsciiWhitespace(text));
  if (!std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7F; })) {
    return UsageError(source, ": expected a token of printable ASCII characters, found other characters");
  }
  return token;
}

absl::StatusOr<std::string> ReadToken(EnvironmentLookup environment) {
  if (IsTrue(environment, "HF_HUB_DISABLE_IMPLICIT_TOKEN")) return std::string();
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}) {
    const std::string value = Get(environment, name);
    if (!value.empty()) return CheckToken(value, name);
  }
  std::string path = ExpandHome(environment, Get(environment, "HF_TOKEN_PATH"));
  if (path.empty()) {
    const absl::StatusOr<std::string> home = HuggingFaceHome(environment);
    if (!home.ok()) return std::string();
    path = JoinPath(*home, "token");
  }
  if (!FileExists(path)) return std::string();
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxTokenBytes));
  return CheckToken(text, path);
}

}  // namespace

absl::StatusOr<std::string> HubCacheDirectory(EnvironmentLookup environment) {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const std::string cache = Get(environment, name); !cache.empty()) return ExpandHome(environment, cache);
  }
  ASSIGN_OR_RETURN(const std::string home, HuggingFaceHome(environment));
  return JoinPath(home, "hub");
}

absl::StatusOr<HubSettings> ReadHubSettings(EnvironmentLookup environment) {
  HubSettings settings;
  ASSIGN_OR_RETURN(settings.cache_directory, HubCacheDirectory(environment));
  ASSIGN_OR_RETURN(settings.endpoint, ReadEndpoint(environment, settings.endpoint));
  ASSIGN_OR_RETURN(settings.token, ReadToken(environment));
  const bool hub_says = !Get(environment, "HF_HUB_OFFLINE").empty();
  settings.offline = IsTrue(environment, hub_says ? "HF_HUB_OFFLINE" : "TRANSFORMERS_OFFLINE");
  for (const char* name : {"CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"}) {
    if (const std::string bundle = Get(environment, name); !bundle.empty()) settings.ca_bundle = bundle;
  }
  settings.hide_progress = IsTrue(environment, "HF_HUB_DISABLE_PROGRESS_BARS");
  RETURN_IF_ERROR(ReadTimeout(environment, "HF_HUB_ETAG_TIMEOUT", &settings.metadata_timeout_s));
  RETURN_IF_ERROR(ReadTimeout(environment, "HF_HUB_DOWNLOAD_TIMEOUT", &settings.download_timeout_s));
  return settings;
}

}  // namespace pith
