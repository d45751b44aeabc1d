// The subcommands: each function is defined in the file of its name and has one row in command_table.cc.
#pragma once

#include "base/interrupt.h"
#include "cli/command.h"

namespace pith {

using CommandFunction = std::function<absl::Status(const CommonOptions&)>;

CommandFunction SetupConvert(CLI::App& app);
CommandFunction SetupInspect(CLI::App& app);
CommandFunction SetupQuantize(CLI::App& app);
CommandFunction SetupEval(CLI::App& app);
CommandFunction SetupRun(CLI::App& app);
CommandFunction SetupChat(CLI::App& app);
CommandFunction SetupServe(CLI::App& app);
CommandFunction SetupBench(CLI::App& app);
CommandFunction SetupProfile(CLI::App& app);

}  // namespace pith
