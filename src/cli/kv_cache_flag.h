// --kv-cache-dtype, the same on every command that runs a model.
#pragma once

#include <optional>

#include "kernels/attention.h"

namespace CLI {
class App;
}

namespace pith {

// Sets `dtype` to what the user asked for; nullopt (auto): the model's own.
void AddKvCacheDtypeFlag(CLI::App& app, std::optional<KvDtype>& dtype);

}  // namespace pith
