#include "hub/pull.h"

#include <cstdlib>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/progress.h"
#include "base/status.h"
#include "cli/commands.h"

namespace pith {
namespace {

struct PullFlags {
  std::string repository;
  std::vector<std::string> include;
  int connections = DownloadOptions().connections;
};

// What goes on where this left off.
std::string SameCommand(const PullFlags& options) {
  std::string command = absl::StrCat("pith pull ", options.repository);
  for (const std::string& glob : options.include) absl::StrAppend(&command, " --include '", glob, "'");
  return command;
}

std::string Summary(const RepoId& repo, const PullReport& report) {
  return absl::StrFormat("%s at %s: %s, %s fetched, %s there already\n", repo.Text(), report.commit.substr(0, 12),
                         report.files.empty() ? "offline" : Plural(static_cast<int64_t>(report.files.size()), "file"),
                         HumanBytes(report.downloaded_bytes), HumanBytes(report.cached_bytes));
}

OrderedJson ToJson(const RepoId& repo, const HubSettings& settings, const PullReport& report) {
  OrderedJson files = OrderedJson::array();
  for (const PulledFile& pulled : report.files) {
    const bool is_lfs = pulled.file.id.kind == ContentId::Kind::kSha256;
    files.push_back({{"name", pulled.file.name},
                     {"bytes", pulled.file.size},
                     {is_lfs ? "sha256" : "git_sha1", pulled.file.id.hex},
                     {"outcome", PullOutcomeName(pulled.outcome)}});
  }
  return {{"repository", repo.FullName()},
          {"revision", repo.revision},
          {"commit", report.commit},
          {"endpoint", settings.endpoint},
          {"offline", settings.offline},
          {"snapshot", report.snapshot},
          {"model", report.model.empty() ? OrderedJson(nullptr) : OrderedJson(report.model)},
          {"downloaded_bytes", report.downloaded_bytes},
          {"cached_bytes", report.cached_bytes},
          {"files", files}};
}

absl::Status RunPull(const PullFlags& options, const CommonOptions& common) {
  ASSIGN_OR_RETURN(const RepoId repo, ParseRepoId(options.repository));
  ASSIGN_OR_RETURN(const HubSettings settings, ReadHubSettings([](const char* name) { return std::getenv(name); }));
  PullOptions pull{.include = options.include};
  pull.download.connections = options.connections;
  pull.download.note = [](const std::string& text) {
    if (ProgressEnabled()) std::fprintf(stderr, "%s\n", text.c_str());
  };
  std::optional<Progress> progress;
  int64_t unit_bytes = 1;
  if (!settings.hide_progress) {
    pull.progress = [&](int64_t done, int64_t total) {
      if (!progress.has_value()) {
        unit_bytes = total >= 10'000'000 ? 1'000'000 : 1'000;
        progress.emplace(absl::StrCat("pulling ", repo.Text()), total / unit_bytes, unit_bytes == 1'000 ? "kB" : "MB");
      }
      progress->Set(done / unit_bytes);
      return absl::OkStatus();
    };
  }
  const absl::StatusOr<PullReport> report = PullRepo(repo, settings, pull);
  progress.reset();
  if (absl::IsCancelled(report.status())) {
    return CancelledError(report.status().message(), ": what came is kept, and `", SameCommand(options), "` goes on from there");
  }
  RETURN_IF_ERROR(report.status());
  if (ProgressEnabled()) std::fputs(Summary(repo, *report).c_str(), stderr);
  if (!common.json_to_stdout()) {
    RETURN_IF_ERROR(PrintResult(absl::StrCat(report->model.empty() ? report->snapshot : report->model, "\n")));
  }
  return WriteJsonResult(common, ToJson(repo, settings, *report));
}

}  // namespace

CommandFunction SetupPull(CLI::App& app) {
  auto options = std::make_shared<PullFlags>();
  app.add_option("repository", options->repository, "ORG/NAME, or ORG/NAME@REVISION with a branch, a tag or a commit")->required();
  app.add_option("--include", options->include,
                 "files to fetch instead of the safetensors: a glob, as '*Q4_K_M.gguf' (repeatable; * matches / too)")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  app.add_option("--connections", options->connections, "ranges of a file that are fetched at once")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  return [options](const CommonOptions& common) { return RunPull(*options, common); };
}

}  // namespace pith
