#include "cli/prepack_cache_flag.h"

#include "CLI/CLI.hpp"

namespace pith {

void AddPrepackCacheFlag(CLI::App& app, std::string& directory) {
  app.add_option(
      "--prepack-cache", directory,
      "directory to keep weights in as the kernels read them: the first start writes a file about as large as the weights, later "
      "ones load it in a fraction of the time (default: none)");
}

}  // namespace pith
