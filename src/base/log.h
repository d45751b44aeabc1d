// The process log: spdlog to stderr. stdout carries results only.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "spdlog/spdlog.h"

namespace pith {

// Sets level ("trace debug info warn error off") and pattern; false if the level is unknown. Call once, before threads start.
bool InitLogging(absl::string_view level);

}  // namespace pith
