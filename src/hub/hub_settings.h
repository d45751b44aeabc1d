// What the environment says about the hub and its cache, under the names that huggingface_hub gives these variables: HF_HOME, HF_HUB_CACHE,
// XDG_CACHE_HOME, HF_ENDPOINT, HF_TOKEN, HF_TOKEN_PATH, HF_HUB_OFFLINE, HF_HUB_ETAG_TIMEOUT, HF_HUB_DOWNLOAD_TIMEOUT,
// HF_HUB_DISABLE_IMPLICIT_TOKEN, HF_HUB_DISABLE_PROGRESS_BARS; and SSL_CERT_FILE, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE. Variables set to
// nothing count as not set. Thread-safe, no state.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace pith {

// nullptr: not set. std::getenv, or a map in tests.
using EnvironmentLookup = absl::FunctionRef<const char*(const char* name)>;

struct HubSettings {
  std::string endpoint = "https://huggingface.co";  // http or https, without "/" at the end
  std::string cache_directory;                      // holds models--ORG--NAME
  std::string token;                                // empty: none
  std::string ca_bundle;                            // file of certificates to trust; empty: those of the system
  bool offline = false;
  bool hide_progress = false;
  int metadata_timeout_s = 10;  // to connect and for each answer of the API
  int download_timeout_s = 10;  // without a byte received
};

// HF_HUB_CACHE, else HF_HOME/hub, else XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub. Errors: kInvalidArgument when none of
// these and no HOME is set.
absl::StatusOr<std::string> HubCacheDirectory(EnvironmentLookup environment);

// Reads the file of the token too. Errors: kInvalidArgument naming the variable; kAborted and kDataLoss for a token file that is there and
// cannot be read.
absl::StatusOr<HubSettings> ReadHubSettings(EnvironmentLookup environment);

}  // namespace pith
