#include "hub/download.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "base/foreign_file.h"
#include "base/status.h"
#include "hub/body_check.h"
#include "hub/hub_client.h"
#include "hub/partial_file.h"
#include "hub/range_fetch.h"

namespace pith {
namespace {

// Adds bytes to the file and reports them. What came counts even when the report ends the download.
absl::Status Append(PartialFile& file, absl::string_view bytes, const DownloadOptions& options) {
  RETURN_IF_ERROR(file.Append(bytes));
  return options.progress ? options.progress(static_cast<int64_t>(bytes.size())) : absl::OkStatus();
}

// The rest of a file by one request after another, as servers without ranges need it and small files do best.
absl::Status FetchInOrder(const DownloadSource& source, PartialFile& file, const DownloadOptions& options) {
  HttpClient http(HubHttpOptions(source.settings, source.settings.download_timeout_s));
  RetryState retry(options.retry);
  while (file.written() < file.size()) {
    const int64_t first = file.written();
    int64_t skip = 0;  // bytes of a whole file that are there already
    bool checked = false;
    const auto take = [&](const HttpClientResponse& response, absl::string_view piece) -> absl::Status {
      if (!std::exchange(checked, true)) {
        ASSIGN_OR_RETURN(const BodyRange body, CheckBody(response, source.file, first, -1, piece));
        skip = first - body.first;
      }
      const int64_t skipped = std::min(skip, static_cast<int64_t>(piece.size()));
      skip -= skipped;
      piece.remove_prefix(static_cast<size_t>(skipped));
      if (piece.empty()) return absl::OkStatus();
      if (static_cast<int64_t>(piece.size()) > file.size() - file.written()) {
        return BadFileError("expected ", file.size(), " bytes as in the listing, found more");
      }
      retry.Progress();
      return Append(file, piece, options);
    };
    HttpClientRequest request{.url = source.url};
    if (first > 0) request.first_byte = first;
    const absl::StatusOr<HttpClientResponse> answer = http.Get(request, take);
    absl::Status status = answer.ok() ? StatusOfAnswer(*answer, source.repo, source.settings, source.file.name) : answer.status();
    if (status.ok() && file.written() < file.size()) status = UnavailableError("cut after ", file.written(), " of ", file.size(), " bytes");
    if (!status.ok()) RETURN_IF_ERROR(retry.WaitAfter(status, answer.ok() ? answer->retry_after_s() : std::nullopt));
  }
  return absl::OkStatus();
}

absl::Status Fetch(const DownloadSource& source, PartialFile& file, const DownloadOptions& options) {
  if (file.size() - file.written() > options.range_bytes && options.connections > 1) {
    bool ranges_ignored = false;
    RETURN_IF_ERROR(FetchRanges(
        source, file.written(), options, [&](absl::string_view bytes) { return Append(file, bytes, options); }, &ranges_ignored));
  }
  return FetchInOrder(source, file, options);
}

// Weights that were committed as the pointer to them have the right hash and are of no use.
absl::Status CheckContent(const RepoFile& file, const std::string& beginning) {
  const bool weights = absl::EndsWith(file.name, ".safetensors") || absl::EndsWithIgnoreCase(file.name, ".gguf");
  if (!weights || !absl::StartsWith(beginning, "version https://git-lfs.github.com/spec/")) return absl::OkStatus();
  return BadFileError("expected weights, found a Git LFS pointer that was committed in their place; the repository has to be mended");
}

}  // namespace

absl::StatusOr<DownloadResult> DownloadFile(const DownloadSource& source, const std::string& blob_path, const DownloadOptions& options) {
  const RepoFile& file = source.file;
  const std::string where = absl::StrCat(source.repo.Text(), ": ", Printable(file.name));
  ASSIGN_OR_RETURN(const std::unique_ptr<PartialFile> partial, PartialFile::Open(blob_path, file.size, file.id));
  DownloadResult result{.resumed_bytes = partial->written()};
  while (true) {
    if (const absl::Status fetched = Fetch(source, *partial, options); !fetched.ok()) {
      if (partial->written() == 0) partial->Discard();
      return Annotate(fetched, where);
    }
    std::string found;
    if (partial->HashIsRight(&found)) break;
    if (result.resumed_bytes == 0) {
      const std::string content = FoundContent(partial->beginning());
      partial->Discard();
      return BadFileError(where, ": expected ", file.id.kind_name(), " ", file.id.hex, ", found ", found, content);
    }
    if (options.note) options.note(absl::StrCat(where, ": what an earlier download left is wrong; starting over"));
    if (options.progress) RETURN_IF_ERROR(options.progress(-partial->written()));
    RETURN_IF_ERROR(partial->Restart());
    result.resumed_bytes = 0;
  }
  if (const absl::Status content = CheckContent(file, partial->beginning()); !content.ok()) {
    partial->Discard();
    return Annotate(content, where);
  }
  RETURN_IF_ERROR(partial->Commit());
  return result;
}

}  // namespace pith
