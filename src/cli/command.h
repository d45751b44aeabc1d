// One subcommand of the binary: flags in, one call into the modules below, a result out. Each lives in its own file and has one row in
// command_table.cc.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/json.h"
#include "base/thread_pool.h"

namespace CLI {
class App;
}

namespace pith {

// Options every command takes.
struct CommonOptions {
  std::string json_path;  // --json FILE|-: where to write the result object; empty: none. Checked to be writable before the command runs
  bool quiet = false;
  int threads = 0;  // 0: every usable CPU
  std::string log_level = "warn";
  std::string command_line;  // as it was given, to be repeated: words quoted for a shell where they must be

  bool json_to_stdout() const { return json_path == "-"; }
};

// Runs a command after parsing; owns its options.
using CommandFunction = std::function<absl::Status(const CommonOptions&)>;

struct Command {
  const char* name;
  const char* summary;
  const char* footer;                       // examples, shown below --help
  CommandFunction (*setup)(CLI::App& app);  // adds the command's own flags to `app`
};

// THE TABLE, in the order --help lists them.
absl::Span<const Command> Commands();

// Parses the command line and runs the command. Returns the exit code; messages go to stderr.
int RunCommandLine(int argc, const char* const* argv);

// --seed: an integer in [0, 2^64).
void AddSeedFlag(CLI::App& app, uint64_t& seed, const char* help);

// Writes the result object where --json says ("schema_version" is added). No-op without --json.
absl::Status WriteJsonResult(const CommonOptions& options, OrderedJson result);

// A second file that a command writes, named by `flag`. Refused before the work, like --json: what cannot be written, and the file of
// --json itself. Errors: kInvalidArgument, those of AtomicFileWriter::Create.
absl::Status CheckOutputFile(const CommonOptions& options, absl::string_view flag, const std::string& path);

// Prints to stdout. Errors: kAborted when stdout is closed or full, so that a lost result is never reported as success.
absl::Status PrintResult(absl::string_view text);

// "2 tensors", "1 tensor"
std::string Plural(int64_t count, absl::string_view noun);
// Decimal units: "98.4 MB", "1.12 GB".
std::string HumanBytes(int64_t bytes);

}  // namespace pith
