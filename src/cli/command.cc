#include "cli/command.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/status.h"
#include "cli/version.h"

namespace pith {
namespace {

void AddCommonOptions(CLI::App& app, CommonOptions& options) {
  app.add_option("--json", options.json_path, "write the result as JSON to FILE, or to stdout with -")->type_name("FILE|-");
  app.add_flag("-q,--quiet", options.quiet, "no progress and no notes on stderr");
  app.add_option("-t,--threads", options.threads, "threads (default: every usable CPU)")->check(CLI::Range(1, 256));
  app.add_option("--log-level", options.log_level, "trace, debug, info, warn, error or off")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}))
      ->capture_default_str();
}

// Runs one command with every failure turned into a status.
absl::Status RunGuarded(const CommandFunction& run, const CommonOptions& options) {
  try {
    return run(options);
  } catch (const std::bad_alloc&) {
    return OutOfMemoryError("out of memory");
  } catch (const std::exception& error) {
    return BugError("unexpected exception: ", error.what());
  }
}

int Report(const absl::Status& status) {
  if (status.ok()) return kExitDone;
  const int signal = InterruptSignal();
  if (absl::IsCancelled(status) && signal != 0) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
    return 128 + signal;
  }
  std::fprintf(stderr, "error: %s\n", std::string(status.message()).c_str());
  return ToExitCode(status);
}

}  // namespace

int RunCommandLine(int argc, const char* const* argv) {
  CLI::App app{"pith quantizes an LLM, proves what the quantized model kept, and serves it fast.", "pith"};
  app.require_subcommand(1);
  app.set_version_flag("--version", VersionText());
  app.failure_message(CLI::FailureMessage::simple);

  CommonOptions options;
  CommandFunction chosen;
  for (const Command& command : Commands()) {
    CLI::App* sub = app.add_subcommand(command.name, command.summary);
    sub->footer(command.footer);
    AddCommonOptions(*sub, options);
    sub->parse_complete_callback([&chosen, run = command.setup(*sub)] { chosen = run; });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? kExitDone : kExitUsage;
  }
  InitLogging(options.log_level);
  SetProgressEnabled(!options.quiet);
  InstallSignalHandlers();
  return Report(RunGuarded(chosen, options));
}

absl::Status PrintResult(absl::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return IoError("stdout: ", std::strerror(errno));
  }
  return absl::OkStatus();
}

absl::Status WriteJsonResult(const CommonOptions& options, OrderedJson result) {
  if (options.json_path.empty()) return absl::OkStatus();
  OrderedJson object = {{"schema_version", 1}};
  object.update(result);
  const std::string text = DumpJson(object, 2) + "\n";
  return options.json_to_stdout() ? PrintResult(text) : WriteFileAtomically(options.json_path, text);
}

std::string Plural(int64_t count, absl::string_view noun) { return absl::StrCat(count, " ", noun, count == 1 ? "" : "s"); }

std::string HumanBytes(int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (value < 1e6) return absl::StrFormat("%.1f kB", value / 1e3);
  if (value < 1e9) return absl::StrFormat("%.1f MB", value / 1e6);
  return absl::StrFormat("%.2f GB", value / 1e9);
}

}  // namespace pith
