// --prepack-cache, the same on every command that runs a model.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace pith {

// Sets `directory` to where prepacked weights are kept between starts; empty: nowhere.
void AddPrepackCacheFlag(CLI::App& app, std::string& directory);

}  // namespace pith
