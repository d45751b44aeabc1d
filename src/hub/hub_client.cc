#include "hub/hub_client.h"

#include "absl/strings/match.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr size_t kMaxAnswerBytes = size_t{64} << 20;
constexpr int kMaxPages = 1000;

std::string Where(const RepoId& repo, absl::string_view what) {
  return what.empty() ? repo.Text() : absl::StrCat(repo.Text(), ": ", Printable(what));
}

// What to do about a missing right.
std::string TokenAdvice(const HubSettings& settings) {
  return settings.token.empty() ? "no token was sent: set HF_TOKEN to one that has access" : "the token that was sent has no access";
}

}  // namespace

HttpOptions HubHttpOptions(const HubSettings& settings, int stall_timeout_s) {
  return {.token = settings.token,
          .token_url = settings.endpoint,
          .user_agent = "pith",
          .ca_bundle = settings.ca_bundle,
          .connect_timeout_s = settings.metadata_timeout_s,
          .stall_timeout_s = stall_timeout_s};
}

absl::Status StatusOfAnswer(const HttpClientResponse& response, const RepoId& repo, const HubSettings& settings, absl::string_view what) {
  const int status = response.status;
  if (status >= 200 && status <= 299) return absl::OkStatus();
  const std::string where = Where(repo, what),
                    answer = absl::StrCat(" (HTTP ", status, " of ", Printable(ShownUrl(response.url), 200), ")");
  const std::string& code = response.Header("x-error-code");
  if (status == 429) return UnavailableError(where, ": too many requests", answer);
  if (status == 408 || (status >= 500 && status <= 504)) return UnavailableError(where, ": the hub is not available", answer);
  if (code == "GatedRepo") {
    return MissingInputError(where, ": gated: accept its terms at ", settings.endpoint, "/", repo.FullName(), "; ", TokenAdvice(settings),
                             answer);
  }
  if (code == "RevisionNotFound") return MissingInputError(where, ": no revision \"", repo.revision, "\"", answer);
  if (code == "EntryNotFound") return MissingInputError(where, ": no such file in the repository", answer);
  if (status == 401 && !settings.token.empty() && absl::StrContains(response.Header("x-error-message"), "Invalid credentials")) {
    return MissingInputError(where, ": the hub does not know the token that was sent; see HF_TOKEN", answer);
  }
  if (status == 416) return BadFileError(where, ": expected a file as long as in the listing, found a shorter one", answer);
  if (code == "RepoNotFound" || status == 401 || (status == 404 && what.empty())) {
    return MissingInputError(where, ": no such repository on ", settings.endpoint, ", or a private one; ", TokenAdvice(settings), answer);
  }
  const std::string& message = response.Header("x-error-message");
  const std::string said = message.empty() ? "" : absl::StrCat(": ", Printable(message, 200));
  if (status == 403) return MissingInputError(where, ": access refused", said, "; ", TokenAdvice(settings), answer);
  if (status == 404 || status == 410) return MissingInputError(where, ": not found", said, answer);
  return IoError(where, ": expected the file or an answer about it", said, answer);
}

HubClient::HubClient(const HubSettings& settings, const RepoId& repo, const RetryPolicy& retry)
    : settings_(settings), repo_(repo), retry_(retry), http_(HubHttpOptions(settings, settings.metadata_timeout_s)) {}

absl::StatusOr<std::string> HubClient::GetText(const std::string& url, HttpClientResponse* response) {
  RetryState retry(retry_);
  while (true) {
    std::string text;
    absl::StatusOr<HttpClientResponse> answer = http_.Get(
        {.url = url}, [&](const HttpClientResponse&, absl::string_view piece) -> absl::Status {
          if (text.size() + piece.size() > kMaxAnswerBytes) {
            return BadFileError(Printable(ShownUrl(url), 200), ": expected an answer of at most ", kMaxAnswerBytes, " bytes, found more");
          }
          absl::StrAppend(&text, piece);
          return absl::OkStatus();
        });
    const absl::Status status = answer.ok() ? StatusOfAnswer(*answer, repo_, settings_, "") : answer.status();
    if (status.ok()) {
      *response = *std::move(answer);
      return text;
    }
    RETURN_IF_ERROR(retry.WaitAfter(status, answer.ok() ? answer->retry_after_s() : std::nullopt));
  }
}

absl::StatusOr<std::string> HubClient::ResolveCommit() {
  if (IsCommitHash(repo_.revision)) return repo_.revision;
  HttpClientResponse response;
  ASSIGN_OR_RETURN(const std::string text, GetText(RevisionUrl(settings_.endpoint, repo_), &response));
  const absl::StatusOr<std::string> commit = ParseRevision(text);
  return commit.ok() ? commit : Annotate(commit.status(), Printable(ShownUrl(response.url), 200));
}

absl::StatusOr<std::vector<RepoFile>> HubClient::ListFiles(const std::string& commit) {
  ASSIGN_OR_RETURN(const std::string origin, UrlOrigin(settings_.endpoint));
  std::vector<RepoFile> files;
  std::string url = TreeUrl(settings_.endpoint, repo_, commit);
  for (int page = 0; page < kMaxPages; ++page) {
    HttpClientResponse response;
    ASSIGN_OR_RETURN(const std::string text, GetText(url, &response));
    const std::string shown = Printable(ShownUrl(response.url), 200);
    absl::StatusOr<std::vector<RepoFile>> more = ParseTreePage(text);
    if (!more.ok()) return Annotate(more.status(), shown);
    files.insert(files.end(), more->begin(), more->end());
    const std::string next = NextPageUrl(response.Header("link"));
    if (next.empty()) return files;
    ASSIGN_OR_RETURN(url, ResolveUrl(response.url, next));
    ASSIGN_OR_RETURN(const std::string next_origin, UrlOrigin(url));
    if (next_origin != origin) {
      return BadFileError(shown, ": expected the next page of the listing on the same host, found ", Printable(ShownUrl(url), 200));
    }
  }
  return BadFileError(repo_.Text(), ": expected a listing of at most ", kMaxPages, " pages, found more");
}

}  // namespace pith
