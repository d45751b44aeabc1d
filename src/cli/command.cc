#include "cli/command.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <new>
#include <system_error>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/standard_streams.h"
#include "base/status.h"
#include "cli/version.h"

namespace pith {
namespace {

constexpr size_t kMaxMessageBytes = 4000;

void AddCommonOptions(CLI::App& app, CommonOptions& options) {
  app.add_option("--json", options.json_path, "write the result as JSON to FILE, or to stdout with -")
      ->type_name("FILE|-")
      ->check([](const std::string& path) { return path.empty() ? "expected a file name or -, found an empty text" : ""; }, "");
  app.add_flag("-q,--quiet", options.quiet, "no progress and no notes on stderr");
  app.add_option("-t,--threads", options.threads, "threads (default: every usable CPU)")->check(CLI::Range(1, 256));
  app.add_option("--log-level", options.log_level, "trace, debug, info, warn, error or off")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}))
      ->capture_default_str();
}

// A result that cannot be written is refused now, not after the work.
absl::Status CheckJsonPath(const CommonOptions& options) {
  if (options.json_path.empty() || options.json_to_stdout()) return absl::OkStatus();
  return Annotate(AtomicFileWriter::Create(options.json_path).status(), "--json");
}

// Runs one command with every failure turned into a status.
absl::Status RunGuarded(const CommandFunction& run, const CommonOptions& options) {
  try {
    RETURN_IF_ERROR(CheckJsonPath(options));
    return run(options);
  } catch (const std::bad_alloc&) {
    return OutOfMemoryError("out of memory");
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) return OutOfMemoryError("cannot start a thread: ", error.what());
    return BugError("unexpected exception: ", error.what());
  } catch (const std::exception& error) {
    return BugError("unexpected exception: ", error.what());
  }
}

// One line, whatever names of files and tensors the message quotes.
int Report(const absl::Status& status) {
  if (status.ok()) return kExitDone;
  const std::string message = Printable(status.message(), kMaxMessageBytes);
  const int signal = InterruptSignal();
  if (absl::IsCancelled(status) && signal != 0) {
    std::fprintf(stderr, "%s\n", message.c_str());
    return 128 + signal;
  }
  std::fprintf(stderr, "error: %s\n", message.c_str());
  return ToExitCode(status);
}

std::string CommandNames() {
  return absl::StrJoin(Commands(), ", ", [](std::string* out, const Command& command) { absl::StrAppend(out, command.name); });
}

// What is wrong with the command line. CLI11 says nothing of an unknown command and lists arguments too many from last to first.
std::string DescribeParseError(const CLI::App& app, const CLI::App& command, const CLI::ParseError& error) {
  const std::vector<std::string> before = app.remaining();  // what stands where a command should
  if (!before.empty() || (&command == &app && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr)) {
    return absl::StrCat("command: expected one of ", CommandNames(), "; found ", before.empty() ? "none" : before.front());
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    return absl::StrCat("expected no more arguments, found ", absl::StrJoin(command.remaining(), " "));
  }
  return error.what();
}

// --help, --version and errors of the command line itself.
int ReportParse(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) {
    app.exit(error);
    return std::cout.flush() ? kExitDone : Report(IoError("stdout: ", std::strerror(errno)));
  }
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  const std::string page = chosen.empty() ? "pith --help" : absl::StrCat("pith ", command.get_name(), " --help");
  return Report(UsageError(DescribeParseError(app, command, error), " (see ", page, ")"));
}

// Words of letters, digits and harmless signs stay as they are.
std::string QuoteCommandLine(int argc, const char* const* argv) {
  std::string line = "pith";
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("-_./=,:@%+", c);
    });
    absl::StrAppend(&line, " ", plain ? std::string(word) : absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'"));
  }
  return line;
}

}  // namespace

int RunCommandLine(int argc, const char* const* argv) {
  ReserveStandardStreams();
  CLI::App app{"pith quantizes an LLM, proves what the quantized model kept, and serves it fast.", "pith"};
  app.require_subcommand(1);
  app.set_version_flag("--version", VersionText());

  CommonOptions options{.command_line = QuoteCommandLine(argc, argv)};
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
    return ReportParse(app, error);
  }
  InitLogging(options.log_level);
  SetProgressEnabled(!options.quiet);
  InstallSignalHandlers();
  return Report(RunGuarded(chosen, options));
}

void AddSeedFlag(CLI::App& app, uint64_t& seed, const char* help) {
  const auto check = [](const std::string& text) {
    uint64_t value = 0;
    return absl::SimpleAtoi(text, &value) ? std::string() : absl::StrCat("expected an integer in [0, 2^64), found ", Printable(text, 40));
  };
  app.add_option("--seed", seed, help)->check(check, "")->capture_default_str();
}

absl::Status CheckOutputFile(const CommonOptions& options, absl::string_view flag, const std::string& path) {
  if (path.empty()) return UsageError(flag, ": expected a file name, found an empty text");
  RETURN_IF_ERROR(Annotate(AtomicFileWriter::Create(path).status(), flag));
  if (options.json_path.empty() || options.json_to_stdout()) return absl::OkStatus();
  std::error_code failed;
  const std::filesystem::path file = std::filesystem::weakly_canonical(path, failed);
  if (file != std::filesystem::weakly_canonical(options.json_path, failed) || failed) return absl::OkStatus();
  return UsageError(flag, ": expected another file than --json, found ", path, " for both");
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
