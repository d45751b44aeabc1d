// Names of model repositories on a Hugging Face hub: ORG/NAME, with @REVISION when it is not the branch "main".
// Rules as the hub and its Python client have them: letters, digits, "-", "_" and "." of at most 96 bytes each, not beginning or ending
// with
// "-" or ".", no "--" and no "..", no ".git" at the end. Thread-safe, no state.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pith {

struct RepoId {
  std::string owner, name;
  std::string revision = "main";  // a branch, a tag, "refs/pr/N" or a commit

  std::string FullName() const;  // "owner/name"
  std::string Text() const;      // as ParseRepoId takes it: "owner/name" or "owner/name@revision"

  friend bool operator==(const RepoId&, const RepoId&) = default;
};

// Errors: kInvalidArgument, naming the part, the rule and what was found. What it accepts is safe as a part of a path and of a URL.
absl::StatusOr<RepoId> ParseRepoId(absl::string_view text);

// 40 lower-case hex digits: a full commit hash, or the git SHA-1 of a file.
bool IsCommitHash(absl::string_view text);

// Whether a name of a file of a repository stays inside it wherever it is joined to: relative, no empty, "." or ".." part, no control
// characters or backslash, parts of at most 255 bytes.
bool IsSafeFileName(absl::string_view name);

}  // namespace pith
