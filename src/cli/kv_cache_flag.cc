#include "cli/kv_cache_flag.h"

#include <string>

#include "CLI/CLI.hpp"
#include "kv_cache/kv_storage.h"

namespace pith {

void AddKvCacheDtypeFlag(CLI::App& app, std::optional<KvDtype>& dtype) {
  app.add_option_function<std::string>(
         "--kv-cache-dtype", [&dtype](const std::string& name) { dtype = ParseKvDtype(name); },
         "format of keys and values: bf16, int8 or fp8; auto: what the model declares, else bf16")
      ->check(CLI::IsMember({"auto", "bf16", "int8", "fp8"}))
      ->default_str("auto");
}

}  // namespace pith
