#include "hub/repo_id.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/status.h"

namespace pith {
namespace {

constexpr size_t kMaxNameBytes = 96;
constexpr size_t kMaxRevisionBytes = 200;
constexpr size_t kMaxFileNameBytes = 255;
constexpr size_t kMaxFilePathBytes = 1024;

bool IsWord(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// "" or what a name of an owner or a model must be and is not.
std::string NameFault(absl::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes) return absl::StrCat("1 to ", kMaxNameBytes, " characters");
  if (!std::all_of(name.begin(), name.end(), [](char c) { return IsWord(c) || c == '-' || c == '.'; })) {
    return "letters, digits, \"-\", \"_\" and \".\"";
  }
  if (!IsWord(name.front()) || !IsWord(name.back())) return "a name that does not begin or end with \"-\" or \".\"";
  if (absl::StrContains(name, "--") || absl::StrContains(name, "..")) return "a name without \"--\" and \"..\"";
  return "";
}

// The same of a revision, after git-check-ref-format.
std::string RevisionFault(absl::string_view revision) {
  if (revision.empty() || revision.size() > kMaxRevisionBytes) return absl::StrCat("1 to ", kMaxRevisionBytes, " characters");
  for (const char c : revision) {
    if (c <= ' ' || c >= 0x7F || absl::StrContains("~^:?*[\\\"@", c)) {
      return "the name of a branch or tag, or a commit (printable ASCII without ~^:?*[\\\"@)";
    }
  }
  for (const absl::string_view part : absl::StrSplit(revision, '/')) {
    if (part.empty() || part.front() == '.' || part.back() == '.' || part.front() == '-') {
      return "parts between \"/\" that are not empty and do not begin with \".\" or \"-\" or end with \".\"";
    }
    if (absl::EndsWith(part, ".lock")) return "a name that does not end with \".lock\"";
  }
  return absl::StrContains(revision, "..") ? "a name without \"..\"" : "";
}

bool IsLowerHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

std::string RepoId::FullName() const { return absl::StrCat(owner, "/", name); }

std::string RepoId::Text() const { return revision == "main" ? FullName() : absl::StrCat(FullName(), "@", revision); }

absl::StatusOr<RepoId> ParseRepoId(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> at = absl::StrSplit(text, absl::MaxSplits('@', 1));
  const std::vector<absl::string_view> parts = absl::StrSplit(at.first, '/');
  const std::string shown = Printable(text, 200);
  if (parts.size() != 2) return UsageError("repository: expected ORG/NAME or ORG/NAME@REVISION, found \"", shown, "\"");
  RepoId repo{.owner = std::string(parts[0]), .name = std::string(parts[1])};
  if (const std::string fault = NameFault(repo.owner); !fault.empty()) {
    return UsageError("repository: expected ", fault, " before the \"/\", found \"", shown, "\"");
  }
  std::string fault = NameFault(repo.name);
  if (fault.empty() && absl::EndsWith(repo.name, ".git")) fault = "a name that does not end with \".git\"";
  if (!fault.empty()) return UsageError("repository: expected ", fault, " after the \"/\", found \"", shown, "\"");
  if (at.first.size() == text.size()) return repo;
  repo.revision = std::string(at.second);
  fault = RevisionFault(repo.revision);
  if (!fault.empty()) return UsageError("revision: expected ", fault, ", found \"", shown, "\"");
  return repo;
}

bool IsCommitHash(absl::string_view text) { return text.size() == 40 && IsLowerHex(text); }

bool IsSafeFileName(absl::string_view name) {
  if (name.size() > kMaxFilePathBytes) return false;
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F || c == '\\') return false;
  }
  for (const absl::string_view part : absl::StrSplit(name, '/')) {
    if (part.empty() || part == "." || part == ".." || part.size() > kMaxFileNameBytes) return false;
  }
  return true;
}

}  // namespace pith
