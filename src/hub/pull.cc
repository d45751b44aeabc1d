#include "hub/pull.h"

#include <algorithm>

#include "base/interrupt.h"
#include "base/status.h"
#include "hub/cache_layout.h"
#include "hub/file_lock.h"
#include "hub/file_selection.h"
#include "hub/hub_client.h"
#include "hub/model_lookup.h"

namespace pith {
namespace {

constexpr size_t kMaxPulledIndexBytes = size_t{256} << 20;
constexpr uint64_t kDiskReserveBytes = uint64_t{64} << 20;  // left free for everything else

// One pull: the state its steps share.
class Pull {
 public:
  Pull(const RepoId& repo, const HubSettings& settings, const PullOptions& options)
      : repo_(repo), settings_(settings), options_(options), cache_(settings.cache_directory, repo) {}

  absl::StatusOr<PullReport> Run() {
    HubClient hub(settings_, repo_, options_.download.retry);
    absl::StatusOr<std::string> commit = hub.ResolveCommit();
    if (absl::IsUnavailable(commit.status()) && FindCachedModel(settings_.cache_directory, repo_).ok()) {
      return UnavailableError(commit.status().message(), "; the cache has this model as it was pulled last");
    }
    RETURN_IF_ERROR(commit.status());
    report_.commit = *std::move(commit);
    report_.snapshot = cache_.SnapshotPath(report_.commit);
    ASSIGN_OR_RETURN(const std::vector<RepoFile> listing, hub.ListFiles(report_.commit));
    absl::StatusOr<FileSelection> selection = SelectFiles(listing, options_.include);
    if (!selection.ok()) return Annotate(selection.status(), repo_.Text());
    RETURN_IF_ERROR(cache_.CreateFolders());
    if (selection->index_names_more) RETURN_IF_ERROR(ReadIndex(listing, &*selection));
    RETURN_IF_ERROR(CountBytes(selection->files));
    for (const RepoFile& file : selection->files) {
      RETURN_IF_ERROR(CheckInterrupted());
      ASSIGN_OR_RETURN(const PullOutcome outcome, BringIn(file));
      report_.files.push_back({file, outcome});
    }
    for (const std::string& name : selection->absent) RETURN_IF_ERROR(cache_.MarkAbsent(report_.commit, name));
    // Last, so that a revision never names a snapshot that is only partly there.
    RETURN_IF_ERROR(cache_.WriteRef(repo_.revision, report_.commit));
    report_.model = FindCachedModel(settings_.cache_directory, repo_).value_or("");
    return std::move(report_);
  }

 private:
  // The index of shards comes first, for it says which other files there are.
  absl::Status ReadIndex(const std::vector<RepoFile>& listing, FileSelection* selection) {
    const auto index = std::find_if(selection->files.begin(), selection->files.end(),
                                    [](const RepoFile& file) { return file.name == kIndexFileName; });
    const RepoFile file = *index;
    if (file.size > static_cast<int64_t>(kMaxPulledIndexBytes)) {
      return BadFileError(repo_.Text(), ": ", kIndexFileName, ": expected at most ", kMaxPulledIndexBytes, " bytes, found ", file.size);
    }
    ASSIGN_OR_RETURN(const PullOutcome outcome, BringIn(file));
    report_.files.push_back({file, outcome});
    selection->files.erase(index);
    ASSIGN_OR_RETURN(const std::string text, ReadFile(cache_.FilePath(report_.commit, kIndexFileName), kMaxPulledIndexBytes));
    FileSelection with_index{.files = {file}};
    RETURN_IF_ERROR(Annotate(AddShards(listing, text, &with_index), repo_.Text()));
    selection->files.insert(selection->files.end(), with_index.files.begin() + 1, with_index.files.end());
    return absl::OkStatus();
  }

  bool IsCached(const RepoFile& file) const {
    return cache_.HasFile(report_.commit, file.name, file.size) || cache_.HasBlob(file.id.hex, file.size);
  }

  // What is to be fetched, and whether it fits.
  absl::Status CountBytes(const std::vector<RepoFile>& files) {
    done_ = total_ = 0;
    for (const RepoFile& file : files) {
      if (IsCached(file)) continue;
      const int64_t left = static_cast<int64_t>(FileSize(cache_.BlobPath(file.id.hex) + ".incomplete").value_or(0));
      total_ += file.size - (left <= file.size ? left : 0);
    }
    if (total_ == 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const uint64_t free, options_.free_disk_bytes(cache_.root()));
    const uint64_t needed = static_cast<uint64_t>(total_) + kDiskReserveBytes;
    if (free >= needed) return absl::OkStatus();
    return CannotCreateError(Printable(settings_.cache_directory, 500), ": expected ", needed, " free bytes for ", repo_.Text(), " (",
                             total_, " to fetch), found ", free, "; HF_HUB_CACHE names another place");
  }

  // Makes one file of the snapshot be there.
  absl::StatusOr<PullOutcome> BringIn(const RepoFile& file) {
    if (cache_.HasFile(report_.commit, file.name, file.size)) return Count(file, PullOutcome::kCached);
    const auto note_wait = [&] {
      Note(absl::StrCat(repo_.Text(), ": ", Printable(file.name), ": waiting for another process that is fetching it"));
    };
    ASSIGN_OR_RETURN(const FileLock lock, FileLock::Acquire(cache_.LockPath(file.id.hex), note_wait));
    PullOutcome outcome = PullOutcome::kCached;
    if (!cache_.HasBlob(file.id.hex, file.size)) {
      ASSIGN_OR_RETURN(outcome, Fetch(file));
    }
    RETURN_IF_ERROR(cache_.LinkFile(report_.commit, file.name, file.id.hex));
    return Count(file, outcome);
  }

  absl::StatusOr<PullOutcome> Fetch(const RepoFile& file) {
    DownloadOptions download = options_.download;
    download.progress = [&](int64_t bytes) {
      if (bytes < 0) total_ -= bytes;  // to be fetched again
      done_ += std::max<int64_t>(bytes, 0);
      report_.downloaded_bytes += std::max<int64_t>(bytes, 0);
      return options_.progress && total_ > 0 ? options_.progress(done_, total_) : absl::OkStatus();
    };
    const DownloadSource source{FileUrl(settings_.endpoint, repo_, report_.commit, file.name), file, repo_, settings_};
    ASSIGN_OR_RETURN(const DownloadResult result, DownloadFile(source, cache_.BlobPath(file.id.hex), download));
    return result.resumed_bytes > 0 ? PullOutcome::kResumed : PullOutcome::kDownloaded;
  }

  PullOutcome Count(const RepoFile& file, PullOutcome outcome) {
    if (outcome == PullOutcome::kCached) report_.cached_bytes += file.size;
    return outcome;
  }

  void Note(const std::string& text) const {
    if (options_.download.note) options_.download.note(text);
  }

  const RepoId& repo_;
  const HubSettings& settings_;
  const PullOptions& options_;
  const RepoCache cache_;
  PullReport report_;
  int64_t done_ = 0, total_ = 0;  // bytes
};

absl::StatusOr<PullReport> LookUp(const RepoId& repo, const HubSettings& settings) {
  PullReport report;
  const absl::StatusOr<std::string> model = FindCachedModel(settings.cache_directory, repo);
  if (!model.ok()) return absl::Status(model.status().code(), absl::StrCat(model.status().message(), " when HF_HUB_OFFLINE is not set"));
  report.model = *model;
  const RepoCache cache(settings.cache_directory, repo);
  report.commit = cache.CachedCommit(repo.revision).value_or("");
  report.snapshot = cache.SnapshotPath(report.commit);
  return report;
}

}  // namespace

const char* PullOutcomeName(PullOutcome outcome) {
  switch (outcome) {
    case PullOutcome::kCached: return "cached";
    case PullOutcome::kDownloaded: return "downloaded";
    case PullOutcome::kResumed: return "resumed";
  }
  return "";
}

absl::StatusOr<PullReport> PullRepo(const RepoId& repo, const HubSettings& settings, const PullOptions& options) {
  return settings.offline ? LookUp(repo, settings) : Pull(repo, settings, options).Run();
}

}  // namespace pith
