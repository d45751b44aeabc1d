// What the files of the subcommands include. Each defines one function CommandFunction Setup<Name>(CLI::App& app), which command_table.cc
// declares beside its row.
#pragma once

#include "base/interrupt.h"
#include "cli/command.h"
