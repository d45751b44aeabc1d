// For tests only: where the shared data lies, and a scratch directory that goes away.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace pith {

// Path of `name` in the shared data folder ("golden/packing.json"): $PITH_SHARED_DIR, else "shared" beside the checkout.
// The file may be absent; tests then skip with a message.
inline std::string SharedPath(const std::string& name) {
  const char* dir = std::getenv("PITH_SHARED_DIR");
  return absl::StrCat(dir != nullptr ? std::string(dir) : absl::StrCat(PITH_SOURCE_DIR, "/../shared"), "/", name);
}

// Path of `name` in the model cache of scripts/get_models: $PITH_MODELS_DIR, else $XDG_CACHE_HOME/pith/models, else
// ~/.cache/pith/models. May be absent.
inline std::string ModelPath(const std::string& name) {
  const char* dir = std::getenv("PITH_MODELS_DIR");
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (dir != nullptr) return absl::StrCat(dir, "/", name);
  if (cache != nullptr && *cache != '\0') return absl::StrCat(cache, "/pith/models/", name);
  return absl::StrCat(home != nullptr ? home : "", "/.cache/pith/models/", name);
}

// A fresh directory under the system's temporary folder, removed with its content at the end of the scope.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "pith-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return absl::StrCat(path_, "/", name); }

 private:
  std::string path_;
};

}  // namespace pith
